package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/server"
	"github.com/daimon-go/daimon/internal/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunMeasuresEachStrategy(t *testing.T) {
	tier.Need(t, tier.Long, "it compiles and measures all that there is")
	var out strings.Builder
	o := Options{Strategies: "interrupt,busy", Rounds: 2, Rest: 200 * time.Millisecond, Scale: 0.002}
	require.NoError(t, run(context.Background(), &out, o))
	for _, line := range []string{"nothing happens", "| interrupt | ", "| busy | "} {
		require.Contains(t, out.String(), line)
	}
	require.Equal(t, (1+len(loads))*2, strings.Count(out.String(), "\n| interrupt | ")+strings.Count(out.String(), "\n| busy | "))
	o.Strategies = "lazy"
	require.ErrorContains(t, run(context.Background(), &out, o), "lazy: echo -idle lazy does not listen")
}

func TestAnIdleServerThatNeverSleepsIsSeen(t *testing.T) {
	program, err := compile(t.TempDir())
	require.NoError(t, err)
	o := Options{Server: program, Rest: 300 * time.Millisecond}
	used := map[string]rest{}
	for _, name := range []string{"interrupt", "busy"} {
		s := &server.Process{Name: name, Program: program, Reactors: 1, Flags: []string{"-idle", name}}
		require.NoError(t, s.Start(t.Context()))
		used[name], err = o.watch(s)
		s.Stop()
		require.NoError(t, err)
	}
	require.Less(t, used["interrupt"].cpu, 0.1)
	require.Greater(t, used["busy"].cpu, 2*used["interrupt"].cpu)
}

func TestSendFindsTheServerThatDoesNotEcho(t *testing.T) {
	for complaint, spoil := range map[string]func(c net.Conn, message []byte){
		"other bytes":         func(c net.Conn, m []byte) { m[size-1]++; c.Write(m) },
		"closed a connection": func(c net.Conn, m []byte) { c.Write(m[:size-1]); c.Close() },
	} {
		t.Run(complaint, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				echoOnceThen(l, spoil)
			}()
			s := &server.Process{Port: l.Addr().(*net.TCPAddr).Port, PID: os.Getpid()}
			cpu, err := spareCPU()
			require.NoError(t, err)
			_, err = load{conns: 1, messages: 10}.on(s, cpu)
			require.ErrorContains(t, err, complaint)
			<-ended
		})
	}
}

// echoOnceThen echoes the first message of one connection, and answers the second in its own way.
func echoOnceThen(l net.Listener, spoil func(net.Conn, []byte)) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	m := make([]byte, size)
	for _, answer := range []func(net.Conn, []byte){func(c net.Conn, m []byte) { c.Write(m) }, spoil} {
		if _, err := c.Read(m); err != nil {
			return
		}
		answer(c, m)
	}
	c.Read(m) // until the client has seen it and hangs up
}

func TestVoluntarySwitchesCountsSleeps(t *testing.T) {
	before, err := voluntarySwitches(os.Getpid())
	require.NoError(t, err)
	for range 50 {
		ts := unix.NsecToTimespec(int64(time.Millisecond))
		if err := unix.Nanosleep(&ts, nil); err != unix.EINTR { // the runtime interrupts with SIGURG
			require.NoError(t, err)
		}
	}
	after, err := voluntarySwitches(os.Getpid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, after-before, 25) // the thread that slept may have changed, and one may have ended
}

func TestMedian(t *testing.T) {
	results := []result{{rest: rest{cpu: 3}}, {rest: rest{cpu: 1}}, {rest: rest{cpu: 100}}}
	require.Equal(t, 3.0, median(results, func(r result) float64 { return r.rest.cpu }))
}

func TestNothingIsLeftBehind(t *testing.T) {
	left := func() []string {
		all, err := filepath.Glob(filepath.Join(os.TempDir(), "bench-idle-*"))
		require.NoError(t, err)
		return all
	}
	before := left()
	require.NoError(t, run(context.Background(), new(strings.Builder),
		Options{Strategies: "interrupt", Rounds: 1, Rest: time.Millisecond, Scale: 0.0001}))
	require.Subset(t, before, left())
}
