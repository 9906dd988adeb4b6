package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/bench/internal/fake"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/internal/tier"
)

var programs Programs

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bench-echo-test-")
	if err == nil {
		programs, err = compile(dir, "not run here")
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
	s := &server.Process{Name: program, Program: program, Reactors: reactors}
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(s.Stop)
	return s
}

func TestServersEchoWholeBytes(t *testing.T) {
	for name, row := range map[string]struct {
		program               string
		reactors              int
		conns, messages, size int
	}{
		"epoll":                    {programs.Epoll, 1, 100, 5000, 64},
		"epoll, two reactors":      {programs.Epoll, 2, 100, 5000, 64},
		"epoll, one byte":          {programs.Epoll, 1, 3, 1000, 1},
		"epoll, its buffer":        {programs.Epoll, 1, 3, 100, 64 << 10},
		"epoll, short writes":      {programs.Epoll, 1, 3, 12, 16 << 20},
		"epoll, one conn, one msg": {programs.Epoll, 1, 1, 1, 64},
		"plain":                    {programs.Plain, 1, 100, 5000, 64},
		"reads":                    {programs.Reads, 1, 100, 5000, 64},
		"reads, its buffer":        {programs.Reads, 1, 3, 100, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			clients := load.Generator{Program: programs.Load, Conns: row.conns, CPU: -1}
			cost, err := clients.Run(t.Context(), startTest(t, row.program, row.reactors), load.Echo(row.size), row.messages)
			require.NoError(t, err)
			require.Positive(t, cost.CPU)
			require.Positive(t, cost.Wall)
		})
	}
}

func TestServersEchoTheRestAfterTheClientsHalfClose(t *testing.T) {
	for _, program := range []string{programs.Epoll, programs.Plain, programs.Reads} {
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
	for complaint, spoil := range map[string]func([]byte) []byte{
		"other bytes than were expected": func(m []byte) []byte { m[len(m)-1]++; return m },
		"more than was expected":         func(m []byte) []byte { return append(m, 0) },
		"closed a connection":            func(m []byte) []byte { return m[:63] },
	} {
		t.Run(complaint, func(t *testing.T) {
			s := fake.Serve(t, fake.Listen(t), fake.Echo(64, 10, spoil))
			clients := load.Generator{Program: programs.Load, Conns: 1, CPU: -1}
			_, err := clients.Run(t.Context(), s, load.Echo(64), 100)
			require.ErrorContains(t, err, complaint)
		})
	}
}

// small is a measurement in which the plain server stands for Daimon.
func small() Options {
	return Options{Pairs: 3, Reactors: 1, Server: programs.Plain, Conns: 10, Messages: 500, Size: 64}
}

func TestRunPrintsEveryPairAndJudgesTheMedian(t *testing.T) {
	var out strings.Builder
	o := small()
	o.Plain, o.Max = true, 0.001
	require.ErrorContains(t, run(context.Background(), &out, o), "is above 0.001")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2+3+3+1, out.String()) // the last one is the limit
	require.Equal(t, strings.Fields("pair plain epoll control plain plain/epoll control/epoll plain/epoll"), strings.Fields(lines[1]))
	for i, title := range []string{"1", "2", "3", "median", "min", "max"} {
		fields := strings.Fields(lines[2+i])
		require.Len(t, fields, 8)
		require.Equal(t, title, fields[0])
	}
}

func TestRunComparesCoroutinesWithTheSubject(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	var out strings.Builder
	o := small()
	o.Coro, o.Pairs, o.MaxCoro = true, 1, 0.001
	require.ErrorContains(t, run(context.Background(), &out, o), "the median ratio coro/plain, ")
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, strings.Fields("pair reads coro plain epoll control reads/plain coro/plain plain/epoll control/epoll"), strings.Fields(lines[1]))
	o.MaxCoro = 1000
	require.NoError(t, run(context.Background(), io.Discard, o))
}

func TestIdleConnectionsTakeMemory(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures once more")
	var out strings.Builder
	o := small()
	o.Coro, o.Pairs, o.Max, o.Idle = true, 1, 0.001, 500
	require.NoError(t, run(context.Background(), &out, o), "limits are for CPU")
	lines := strings.Split(out.String(), "\n")
	require.Contains(t, lines[0], "conns 500, one message of 64 bytes each")
	var reads, coro, plain float64
	_, err := fmt.Sscanf(strings.TrimSpace(lines[2]), "1 %f %f %f", &reads, &coro, &plain)
	require.NoError(t, err, out.String())
	for _, growth := range []float64{reads, coro, plain} {
		require.Greater(t, growth, 2048.0) // a stack, to begin with
		require.Less(t, growth, 100_000.0)
	}
	o.Idle = 1<<31 - 1
	require.ErrorContains(t, run(context.Background(), &out, o), "ulimit")
}
