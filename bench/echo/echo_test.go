package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/internal/server"
)

var programs Programs

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bench-echo-test-")
	if err == nil {
		programs, err = build(dir, "not run here")
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// startTest runs one of our servers for the length of a test.
func startTest(t *testing.T, program string, reactors int) *server.Process {
	s := &server.Process{Name: program, Program: program}
	require.NoError(t, s.Start(t.Context(), reactors))
	t.Cleanup(s.Stop)
	return s
}

func TestServersEchoWholeBytes(t *testing.T) {
	for name, row := range map[string]struct {
		program  string
		reactors int
		load     Load
	}{
		"epoll":                    {programs.Epoll, 1, Load{Conns: 100, Messages: 5000, Size: 64}},
		"epoll, two reactors":      {programs.Epoll, 2, Load{Conns: 100, Messages: 5000, Size: 64}},
		"epoll, one byte":          {programs.Epoll, 1, Load{Conns: 3, Messages: 1000, Size: 1}},
		"epoll, its buffer":        {programs.Epoll, 1, Load{Conns: 3, Messages: 100, Size: 64 << 10}},
		"epoll, short writes":      {programs.Epoll, 1, Load{Conns: 3, Messages: 12, Size: 16 << 20}},
		"epoll, one conn, one msg": {programs.Epoll, 1, Load{Conns: 1, Messages: 1, Size: 64}},
		"plain":                    {programs.Plain, 1, Load{Conns: 100, Messages: 5000, Size: 64}},
	} {
		t.Run(name, func(t *testing.T) {
			row.load.Program, row.load.CPU = programs.Load, -1
			cost, err := row.load.run(t.Context(), startTest(t, row.program, row.reactors))
			require.NoError(t, err)
			require.Positive(t, cost.CPU)
			require.Positive(t, cost.Wall)
		})
	}
}

func TestServersEchoTheRestAfterTheClientsHalfClose(t *testing.T) {
	for _, program := range []string{programs.Epoll, programs.Plain} {
		c, err := net.Dial("tcp", startTest(t, program, 1).Addr())
		require.NoError(t, err)
		sent := bytes.Repeat([]byte("daimon and his twin "), 1<<19)
		go func() {
			c.Write(sent)
			c.(*net.TCPConn).CloseWrite()
		}()
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got), "%s: %d of %d bytes", program, len(got), len(sent))
		require.NoError(t, c.Close())
	}
}

func TestLoadFindsTheServerThatDoesNotEcho(t *testing.T) {
	for complaint, spoil := range map[string]func(c net.Conn, message []byte){
		"other bytes than it was sent": func(c net.Conn, m []byte) { m[len(m)-1]++; c.Write(m) },
		"more than it was sent":        func(c net.Conn, m []byte) { c.Write(append(m, 0)) },
		"closed a connection":          func(c net.Conn, m []byte) { c.Write(m[:63]); c.Close() },
	} {
		t.Run(complaint, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				echoButSpoil(l, 10, spoil)
			}()
			self := &server.Process{Name: "spoiler", Port: l.Addr().(*net.TCPAddr).Port, PID: os.Getpid()}
			load := Load{Program: programs.Load, Conns: 1, Messages: 100, Size: 64, CPU: -1}
			_, err = load.run(t.Context(), self)
			require.ErrorContains(t, err, complaint)
			require.NoError(t, l.Close())
			<-ended
		})
	}
}

// echoButSpoil echoes messages of 64 bytes on one connection, the nth in its own way, until the client
// has enough.
func echoButSpoil(l net.Listener, nth int, spoil func(net.Conn, []byte)) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	for i := 0; ; i++ {
		m := make([]byte, 64)
		if _, err := io.ReadFull(c, m); err != nil {
			return
		}
		if i == nth {
			spoil(c, m)
		} else {
			c.Write(m)
		}
	}
}

func TestRunPrintsEveryPairAndJudgesTheMedian(t *testing.T) {
	var out strings.Builder
	o := Options{Pairs: 3, Reactors: 1, Server: programs.Plain, Plain: true,
		Load: Load{Conns: 10, Messages: 500, Size: 64}}
	require.NoError(t, run(context.Background(), &out, o))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2+3+3, out.String())
	require.Equal(t, strings.Fields("pair plain epoll control plain plain/epoll control/epoll plain/epoll"), strings.Fields(lines[1]))
	for i, title := range []string{"1", "2", "3", "median", "min", "max"} {
		fields := strings.Fields(lines[2+i])
		require.Len(t, fields, 8)
		require.Equal(t, title, fields[0])
	}
	o.Max = 0.001
	require.ErrorContains(t, run(context.Background(), &out, o), "is above 0.001")
}

func TestWhereTheLoadRuns(t *testing.T) {
	cpus, err := allowedCPUs()
	require.NoError(t, err)
	n := len(cpus)
	beside, err := loadCPU(1, false)
	require.NoError(t, err)
	require.Equal(t, cpus[0], beside)
	anywhere, err := loadCPU(2, false)
	require.NoError(t, err)
	require.Equal(t, -1, anywhere)
	if n > 1 {
		apart, err := loadCPU(n-1, true)
		require.NoError(t, err)
		require.Equal(t, cpus[n-1], apart)
	}
	_, err = loadCPU(n, true)
	require.ErrorContains(t, err, "-apart")
}

func TestSpread(t *testing.T) {
	for name, row := range map[string]struct {
		in   []float64
		want Spread
	}{
		"one figure":             {[]float64{3}, Spread{3, 3, 3}},
		"an odd number":          {[]float64{9, 1, 2}, Spread{2, 1, 9}},
		"an even number":         {[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4}},
		"a stray one is but one": {[]float64{1, 1, 1, 1, 1000}, Spread{1, 1, 1000}},
	} {
		in := append([]float64(nil), row.in...)
		require.Equal(t, row.want, spread(in), name)
		require.Equal(t, row.in, in, "%s: the input is left alone", name)
	}
}

func TestRatiosAreToTheCServer(t *testing.T) {
	require.Equal(t, []float64{3, 2, 1, 1.5, 1, 0.5}, withRatios([]float64{3, 2, 1}))
}
