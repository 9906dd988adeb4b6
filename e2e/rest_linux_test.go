package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

// Nothing happens for ten seconds, and for that long no reactor gets up to see that nothing has. Only
// interrupt promises that; what the others take at rest is their price, and docs/idle.md has it.
func TestIdleReactorsDoNotWake(t *testing.T) {
	plainly(t)
	t.Parallel()
	s := actions.start(t, "-idle", "interrupt")
	c := s.dialed(t, 1)[0]
	steady(t, time.Second, "reactors at rest", func() int64 { return switches(s.reactors(t)) })
	before, spent := s.reactors(t), s.cpuOver(t, 10*time.Second)
	after := s.reactors(t)

	require.Len(t, before, defaultReactors, "one pinned thread each, where there are two CPUs or more")
	for i, th := range after {
		require.Zero(t, th.switches-before[i].switches, "reactor on CPU %s", th.cpus)
	}
	t.Logf("%v of CPU time in 10 s, the runtime's own threads included", spent)
	require.Less(t, spent, 50*time.Millisecond)
	require.NoError(t, ping(c, "awake"))
}

func switches(all []thread) (n int64) {
	for _, th := range all {
		n += th.switches
	}
	return n
}

// Ten thousand connections at rest are what the server is for: each costs a small record, or a small
// stack, and none a buffer or a thread.
func TestTenThousandConnections(t *testing.T) {
	plainly(t)
	const n = 10_000
	exectest.AllowDescriptors(t, n+200) // the test's own; those of the server are the same, as it is its child
	fewEchoes(t, func(t *testing.T, e echo, idle idle) {
		s := e.start(t, idle...)
		open, memory := s.warm(t), s.Resident(t)
		clients := make([]client, n)
		var err error
		for i := range clients {
			clients[i], err = s.connect()
			require.NoError(t, err)
			defer reset(clients[i])
		}
		exectest.Eventually(t, patience, "all accepted", func() bool { return s.Descriptors(t) >= open+n })
		silent := s.Resident(t) - memory
		require.NoError(t, pingAll(clients))
		used := s.Resident(t) - memory

		threads := len(s.threads(t))
		t.Logf("%d B resident for a connection, %d B once it was used; %d threads", silent/n, used/n, threads)
		require.Less(t, used/n, e.idle)
		require.LessOrEqual(t, threads, defaultReactors+12)
		require.NoError(t, pingAll(clients), "all of them still answer")
	})
}

// Over TLS a connection costs what crypto/tls keeps for it beside its record. Handshakes are the clients' work too, so they are
// fewer; and they come one after the other, since a server ends those that are silent for 10 s or too many.
func TestThousandsOfConnectionsOverTLS(t *testing.T) {
	plainly(t)
	const n = 3000
	exectest.AllowDescriptors(t, n+200)
	s := encrypted.start(t)
	open, memory := s.warm(t), s.Resident(t)
	clients := make([]client, n)
	for i := range clients {
		var err error
		clients[i], err = s.connect()
		require.NoError(t, err)
		defer reset(clients[i])
		require.NoError(t, ping(clients[i], "hello"))
	}
	used, threads := s.Resident(t)-memory, len(s.threads(t))
	t.Logf("%d B resident for a connection that was used; %d threads", used/n, threads)
	require.Less(t, used/n, 20<<10)
	require.LessOrEqual(t, threads, defaultReactors+12)
	require.NoError(t, pingAll(clients), "all of them still answer")
	require.Equal(t, open+n, s.Descriptors(t))
}

func pingAll(clients []client) error {
	const workers = 16
	return together(workers, func(w int) error {
		for i := w; i < len(clients); i += workers {
			_ = clients[i].SetDeadline(time.Now().Add(patience))
			if err := ping(clients[i], fmt.Sprintf("connection %d", i)); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
		}
		return nil
	})
}

const (
	loops    = 100
	messages = loops * 400
)

// The system calls of a closed loop, counted by the kernel: what a message costs is one receive and one send, and a
// poll that it shares with others. Only under interrupt: the other strategies poll as often as they look.
func TestSystemCallsOfAClosedLoop(t *testing.T) {
	plainly(t)
	tier.Tool(t, "strace")
	for _, e := range []echo{actions, coroutines} {
		t.Run(e.name, func(t *testing.T) { fewCalls(t, e) })
	}
}

func fewCalls(t *testing.T, e echo) {
	calls, took := closedLoops(t, e)
	// The runtime preempts by the clock, every 10 ms, and each time costs some futex calls. strace makes
	// the server many times slower, a busy machine slower again: so the best of three counts, and where they took
	// seconds it is four for each of those 10 ms that is held against them, and not their number for a message.
	futexes := func() int { return max(messages/20, int(4*took/(10*time.Millisecond))) }
	for try := 1; try < 3 && calls["futex"] > futexes(); try++ {
		calls, took = closedLoops(t, e)
	}
	received := calls["read"] + calls["readv"] + calls["recvfrom"] + calls["recvmsg"]
	sent := calls["write"] + calls["writev"] + calls["sendto"] + calls["sendmsg"]
	polled := calls["epoll_wait"] + calls["epoll_pwait"] + calls["epoll_pwait2"]
	require.InEpsilon(t, messages, received, 0.02, "receives")
	require.InEpsilon(t, messages, sent, 0.02, "sends")
	// At the start the runtime tries to register the files that say how much memory there is.
	require.LessOrEqual(t, calls["epoll_ctl"], loops+50, "a connection is registered once")
	require.Less(t, polled, messages, "polls")
	require.LessOrEqual(t, calls["futex"], futexes(), "threads that the runtime woke or put to sleep")
}

// closedLoops lets the clients of one server say all of their messages, and returns its system calls
// from its first moment to its last, and how long that was.
func closedLoops(t *testing.T, e echo) (map[string]int, time.Duration) {
	t.Helper()
	begun := time.Now()
	table := folder(t) + "/calls"
	s := launch{
		echo:  e,
		flags: []string{"-reactors", "1"},
		under: []string{"strace", "-f", "-c", "-o", table},
	}.start(t)
	s.Pid = child(t, s.Pid)
	word := string(content(1, 64))
	require.NoError(t, together(loops, func(int) error { return s.closedLoop(word, messages/loops) }))
	s.Stop(t) // strace ends as the server does
	calls := counted(t, table)
	t.Logf("%d messages: %v", messages, calls)
	return calls, time.Since(begun)
}

func (s *server) closedLoop(word string, n int) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil { // strace makes it slow
		return err
	}
	for range n {
		if err := ping(c, word); err != nil {
			return err
		}
	}
	return leave(c)
}

// child returns the one process that another has started.
func child(t *testing.T, parent int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(text)), 1)
	return int(number(string(text)))
}

// counted reads the table of strace -c, whose lines are: % time, seconds, usecs/call, calls, errors if
// there were any, syscall.
func counted(t *testing.T, table string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	calls := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 5 && number(f[3]) > 0 && f[len(f)-1] != "total" {
			calls[f[len(f)-1]] = int(number(f[3]))
		}
	}
	return calls
}
