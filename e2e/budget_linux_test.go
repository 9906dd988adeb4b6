package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Thousands of clients make a server hold much: they do not read large answers, or send large bodies slowly, and come again
// when they are cut off. Its memory stays within the budget, and a client that does neither is answered all the time.
func TestBudget(t *testing.T) {
	plainly(t)
	const (
		budget = 64 << 20
		while  = 15 * time.Second
	)
	cmd := exec.Command(os.Args[0], append([]string{"-memory", "64MiB", "-reactors", "2"}, inspectable...)...)
	cmd.Env = append(os.Environ(), asHolder+"=1", "GOMEMLIMIT=160MiB") // for the collector, which else lets the heap grow to twice of what is in use
	server := listen(t, cmd)
	before := server.Resident(t)

	over := make(chan struct{})
	var all sync.WaitGroup
	var cut atomic.Int64
	hold := func(request string, slowly []byte) {
		for {
			c, err := net.Dial("tcp", server.Addr)
			if err == nil {
				_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				_, err = io.WriteString(c, request)
			}
			for err == nil {
				select {
				case <-over:
					_ = c.Close()
					return
				case <-time.After(500 * time.Millisecond):
				}
				if cutOff(c) {
					break
				}
				_, err = c.Write(slowly)
			}
			if c != nil {
				_ = c.Close()
			}
			cut.Add(1)
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
		}
	}
	for i := range 2500 {
		all.Go(func() {
			if i%5 == 0 {
				hold("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n", make([]byte, 50_000))
			} else {
				hold("GET /large HTTP/1.1\r\nHost: a\r\n\r\n", nil)
			}
		})
	}
	var took []time.Duration
	c := dial(t, server.Addr)
	require.NoError(t, c.SetDeadline(time.Now().Add(while+patience)))
	for in, end := bufio.NewReader(c), time.Now().Add(while); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		begun := time.Now()
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err, "a client that holds nothing is not cut off")
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(text))
		took = append(took, time.Since(begun))
	}
	report, peak := viewerOf(t, server).report(t), server.Peak(t)
	close(over)
	all.Wait()

	slices.Sort(took)
	t.Logf("%d answers, in the middle after %v, nine of ten after %v, at most after %v; %d clients were cut off; memory %d MiB before, at most %d MiB",
		len(took), took[len(took)/2], took[len(took)*9/10], took[len(took)-1], cut.Load(), before>>20, peak>>20)
	// The longest is up to the system, which has thousands of connections made and cut off at that time: 0.4 to 5 s.
	require.Less(t, took[len(took)*9/10], time.Second)
	require.Less(t, peak, 3*budget)
	shed := uint64(0)
	for _, s := range report.Schedulers {
		require.LessOrEqual(t, s.Counts["held_bytes"], uint64(budget/2*5/4))
		require.EqualValues(t, budget/2, s.Counts["held_bytes_max"])
		require.Positive(t, s.Counts["reading_pauses_total"])
		shed += s.Counts["connections_shed_total"]
	}
	require.Positive(t, shed)
	require.Contains(t, server.Said(), "connections were shed")
	server.Stop(t)
}

// cutOff reports whether the system knows that the connection is broken, without reading.
func cutOff(c net.Conn) (broken bool) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
			broken = err != nil || code != 0
		})
	}
	return broken || err != nil
}
