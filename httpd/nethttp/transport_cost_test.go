package nethttp_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// asServer has a process of this test only answer requests until its standard input ends.
const asServer = "DAIMON_NETHTTP_SERVER"

func init() {
	if os.Getenv(asServer) != "" {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello")
		}))
		fmt.Println(server.URL)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
}

// The processor time of a small GET with a Transport and with net/http's, of which two are the control.
func TestMeasureATransportBesideThatOfNetHTTP(t *testing.T) {
	tier.Measure(t, "processor time")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asServer+"=1")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = stdin.Close(); require.NoError(t, cmd.Wait()) }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	url := line[:len(line)-1]

	const goroutines, each = 8, 500
	standard := func() *http.Client { return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: goroutines}} }
	clients := []*http.Client{standard(), standard(), over(t, &nethttp.Transport{})}
	lowest := []float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	for round := range 30 {
		for i := range clients {
			i = (i + round) % len(clients)
			before := processorTime(t)
			var all sync.WaitGroup
			for range goroutines {
				all.Go(func() {
					for range each {
						if answer, err := clients[i].Get(url); err == nil {
							_, _ = io.Copy(io.Discard, answer.Body)
							_ = answer.Body.Close()
						} else {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			lowest[i] = min(lowest[i], (processorTime(t)-before)/goroutines/each)
		}
	}
	for _, web := range clients {
		web.CloseIdleConnections()
	}
	control := max(lowest[0], lowest[1]) / min(lowest[0], lowest[1])
	ratio := lowest[2] / min(lowest[0], lowest[1])
	t.Logf("%.1f µs with a Transport, %.1f and %.1f with net/http's: %.2f, control %.2f",
		lowest[2], lowest[0], lowest[1], ratio, control)
	require.LessOrEqual(t, ratio, 1+3*(control-1))
}

// processorTime of this process, in microseconds.
func processorTime(t *testing.T) float64 {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
