package e2e

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/exectest"
)

const (
	// A server at rest may use this share of one CPU: 1/10 leaves room for timers that retry, while a
	// reactor that spins uses all of one.
	restful = 10
	// The grace that latency has under an attack, beside ten times what it is without: the clients of
	// these tests share the machine with the server and with whatever else runs there.
	grace = 50 * time.Millisecond
)

// rests wants the server to let go of the CPU for two seconds.
func (s *server) rests(t *testing.T) {
	t.Helper()
	const window = 2 * time.Second
	spent := s.cpuOver(t, window)
	t.Logf("%v of CPU time in %v", spent, window)
	require.Less(t, spent, window/restful, "the server spins")
}

// settles wants the number of open descriptors back.
func (s *server) settles(t *testing.T, descriptors int) {
	t.Helper()
	exectest.Eventually(t, patience, fmt.Sprintf("%d descriptors", descriptors), func() bool {
		return s.Descriptors(t) <= descriptors
	})
}

// warm lets the server open whatever it opens on first use, and returns its descriptors.
func (s *server) warm(t *testing.T) int {
	t.Helper()
	require.NoError(t, together(64, func(int) error {
		c, err := s.connect()
		if err != nil {
			return err
		}
		return errors.Join(ping(c, "warm"), leave(c))
	}))
	return int(steady(t, 100*time.Millisecond, "the same descriptors", func() int64 {
		return int64(s.Descriptors(t))
	}))
}

// crowd connects n clients that say one byte each, and returns which were answered when no more were for a second.
func (s *server) crowd(t *testing.T, n int) (served, waiting []client) {
	t.Helper()
	all := make([]client, n)
	for i := range all {
		all[i] = s.dial(t)
		_, err := all[i].Write([]byte("?"))
		require.NoError(t, err)
	}
	waiting = all
	until := time.Now().Add(patience)
	for more := all; len(more) > 0 || len(served) == 0 && time.Now().Before(until); {
		time.Sleep(time.Second)
		more, waiting = sorted(t, waiting)
		served = append(served, more...)
	}
	return served, waiting
}

// sorted separates the clients that have been answered from those that have not. Each reactor has a queue of its own, so it
// is not the first that are served.
func sorted(t *testing.T, all []client) (served, waiting []client) {
	t.Helper()
	for _, c := range all {
		if answered(t, c, time.Now().Add(10*time.Millisecond)) {
			served = append(served, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	return served, waiting
}

func answered(t *testing.T, c client, until time.Time) bool {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(until))
	_, err := c.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		require.NoError(t, err, "a client that waits is neither refused nor cut")
	}
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	return err == nil
}

func TestDescriptorsExhausted(t *testing.T) {
	plainly(t)
	t.Parallel()
	underEachIdle(t, func(t *testing.T, idle idle) {
		t.Parallel()
		s := launch{echo: actions, under: limited(64), flags: idle.with("-max-conns", "1000")}.start(t)
		veterans := s.dialed(t, 5)
		served, waiting := s.crowd(t, 100)
		t.Logf("%d served, %d waiting", len(served), len(waiting))
		require.Greater(t, len(served), 20, "of 64 descriptors most are for clients")
		require.Greater(t, len(waiting), 40, "the server has more descriptors than it may")
		s.bears(t, idle)
		for _, c := range veterans {
			require.NoError(t, ping(c, "still here"))
		}
		resumes(t, served, waiting)
		for _, c := range veterans {
			require.NoError(t, ping(c, "and gone"))
			require.NoError(t, leave(c))
		}
		s.Stop(t)
	})
}

// Those that wait cannot even make a handshake: they get theirs when others have left.
func TestClientsThatWaitOverTLS(t *testing.T) {
	plainly(t)
	t.Parallel()
	for name, row := range map[string]struct {
		under       []string
		places      string
		least, most int64
	}{
		"for a descriptor": {limited(64), "1000", 20, 60},
		"for a place":      {nil, "20", 20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitOverTLS(t, launch{echo: encrypted, under: row.under, flags: []string{"-max-conns", row.places}}.start(t), row.least, row.most)
		})
	}
}

func waitOverTLS(t *testing.T, s *server, least, most int64) {
	const n = 100
	served, failed := make(chan client, n), make(chan error, n)
	for range n {
		go func() {
			c, err := s.connect()
			if err == nil {
				err = ping(c, "is there room?")
			}
			if err != nil {
				failed <- err
				return
			}
			served <- c
		}()
	}
	first := steady(t, time.Second, "the clients that are served", func() int64 { return int64(len(served)) })
	require.GreaterOrEqual(t, first, least)
	require.LessOrEqual(t, first, most)
	s.bears(t, idles[0])
	for i := range n {
		select {
		case c := <-served:
			require.NoError(t, errors.Join(ping(c, "still here"), leave(c)))
		case err := <-failed:
			require.NoError(t, err, "after %d", i)
		}
	}
	s.Stop(t)
}

// bears wants a server that cannot accept to wait in silence.
func (s *server) bears(t *testing.T, idle idle) {
	t.Helper()
	lines := strings.Count(s.Said(), "\n")
	if idle.blocks() {
		s.rests(t)
	}
	require.Less(t, strings.Count(s.Said(), "\n")-lines, 20, "the log is flooded")
}

// resumes lets the served go and wants the waiting served, each client that leaves makes room for another.
func resumes(t *testing.T, served, waiting []client) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		for _, c := range served {
			require.NoError(t, leave(c))
		}
		if len(waiting) == 0 {
			return
		}
		require.True(t, time.Now().Before(until), "accepting has not resumed: %d still wait", len(waiting))
		served, waiting = sorted(t, waiting)
	}
}

func TestMaxConns(t *testing.T) {
	plainly(t)
	t.Parallel()
	underEachIdle(t, func(t *testing.T, idle idle) {
		t.Parallel()
		s := actions.start(t, idle.with("-max-conns", "4")...)
		served, waiting := s.crowd(t, 10)
		require.Len(t, served, 4)
		s.bears(t, idle)
		reset(served[0])
		require.NoError(t, leave(served[1]))
		// Two have left, one each way, so two of those that wait get their places, and no third.
		arrived := func() (n int64) {
			for _, c := range waiting {
				if readable(t, c) {
					n++
				}
			}
			return n
		}
		exectest.Eventually(t, patience, "two more served", func() bool { return arrived() >= 2 })
		require.EqualValues(t, 2, steady(t, 200*time.Millisecond, "the clients that are served", arrived))
		require.NoError(t, ping(served[2], "still here"))
		require.NoError(t, ping(served[3], "still here"))
	})
}

// readable reports whether something has arrived, and leaves it there.
func readable(t *testing.T, c client) (ready bool) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		n, _, _ := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ready = n == 1
	}))
	return ready
}

// A greedy client sends for ever and never reads. Its small buffers keep it from filling those of the
// kernel, which are no concern of these tests.
type greedy struct {
	client
	sent atomic.Int64
	done chan struct{}
}

var litany = content(7, 64<<10) // what the greedy say over and over

func (s *server) greedy(t *testing.T) *greedy {
	t.Helper()
	g := &greedy{client: s.dial(t), done: make(chan struct{})}
	buffers := under(g.client).(interface {
		SetReadBuffer(int) error
		SetWriteBuffer(int) error
	})
	require.NoError(t, errors.Join(buffers.SetReadBuffer(64<<10), buffers.SetWriteBuffer(64<<10)))
	go g.send()
	t.Cleanup(g.end)
	return g
}

func (g *greedy) send() {
	defer close(g.done)
	for {
		n, err := g.Write(litany)
		g.sent.Add(int64(n))
		if err != nil {
			return
		}
	}
}

func (g *greedy) end() {
	reset(g.client)
	<-g.done
}

// stuck waits until nothing more goes in from any of them for half a second.
func stuck(t *testing.T, all ...*greedy) {
	t.Helper()
	sent := steady(t, 500*time.Millisecond, "back-pressure", func() (n int64) {
		for _, g := range all {
			n += g.sent.Load()
		}
		return n
	})
	require.Positive(t, sent)
}

// 64 MiB for 50 clients is more than a megabyte each; without back-pressure they would have it in milliseconds.
func TestSendersThatNeverRead(t *testing.T) {
	plainly(t)
	fewEchoes(t, func(t *testing.T, e echo, idle idle) {
		s, other := e.start(t, idle...), actions.start(t)
		open, memory := s.warm(t), s.Resident(t)
		all := make([]*greedy, 50)
		for i := range all {
			all[i] = s.greedy(t)
		}
		during, elsewhere := latencies(t, s, other)
		stuck(t, all...)
		if idle.blocks() {
			s.rests(t)
		}
		after, then := latencies(t, s, other)

		grown := s.Peak(t) - memory
		t.Logf("p99 of neighbours %v during, %v of another server; %v after, %v; %d KiB grown", during, elsewhere, after, then, grown>>10)
		require.Less(t, grown, 64<<20)
		require.Less(t, during, 10*elsewhere+grace)
		require.Less(t, after, 10*then+grace)
		for _, g := range all {
			g.end()
		}
		s.settles(t, open)
		s.Stop(t)
	})
}

// Over TLS the latencies would be those of the clients, which take more time than the server. Memory has a bound of its own:
// 80 KiB are queued, since the high mark is one of encrypted bytes, and a tls.Conn has a record of 18 KiB that it reads.
func TestSendersThatNeverReadOverTLS(t *testing.T) {
	plainly(t)
	s := encrypted.start(t)
	open, memory := s.warm(t), s.Resident(t)
	all := make([]*greedy, 50)
	for i := range all {
		all[i] = s.greedy(t)
	}
	stuck(t, all...)
	s.rests(t)
	grown := s.Peak(t) - memory
	t.Logf("%d KiB grown", grown>>10)
	require.Less(t, grown, 8<<20+50*2*(80<<10+18<<10), "twice for the collector, and 8 MiB for the runtime")
	for _, g := range all {
		g.end()
	}
	s.settles(t, open)
	s.Stop(t)
}

// A client begins to read when all buffers between it and itself are full. What waits in the server has
// to move again, in order, and then the rest with it.
func TestLateReader(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		for _, addr := range []string{"127.0.0.1:0", "unix:" + folder(t) + "/echo.sock"} {
			t.Run(addr, func(t *testing.T) {
				g := launch{echo: e, addr: addr, flags: idle}.start(t).greedy(t)
				stuck(t, g)
				in := make([]byte, len(litany))
				for want := 4 * g.sent.Load(); want > 0; want -= int64(len(in)) {
					_, err := io.ReadFull(g, in)
					require.NoError(t, err)
					require.NoError(t, same(litany, in))
				}
			})
		}
	})
}

// latencies returns the 99th of a hundred exchanges of ten clients beside whatever goes on, and that of an idle server at the
// same time: the greedy share this process with the clients, and the machine with all.
func latencies(t *testing.T, s, other *server) (own, others time.Duration) {
	t.Helper()
	var took [2]time.Duration
	require.NoError(t, together(2, func(i int) error {
		all, err := []*server{s, other}[i].pingPong(10, time.Second)
		if err == nil {
			took[i] = p99(all)
		}
		return err
	}))
	return took[0], took[1]
}

// One connection that never runs dry may not hold the reactor that it shares with fifty others. What their exchanges take
// without it is measured in between, so that both see the same machine.
func TestFirehoseBesidePingPong(t *testing.T) {
	plainly(t)
	fewEchoes(t, func(t *testing.T, e echo, idle idle) {
		const rounds, each = 15, 100 * time.Millisecond
		s := e.start(t, idle.with("-reactors", "1")...)
		var alone, beside []time.Duration
		moved := int64(0)
		for i := range uint64(rounds) {
			took, err := s.pingPong(50, each)
			require.NoError(t, err)
			alone = append(alone, took...)
			hose := talk(s.dial(t), i, 0)
			took, err = s.pingPong(50, each)
			require.NoError(t, err)
			beside = append(beside, took...)
			moved += hose.heard.Load()
			require.NoError(t, hose.finish())
		}
		slices.Sort(alone)
		slices.Sort(beside)

		t.Logf("p99 %v alone, %v beside a firehose of %d MiB", p99(alone), p99(beside), moved>>20)
		require.Greater(t, moved, int64(4<<20), "the firehose is starved")
		require.Less(t, p99(beside), 10*p99(alone)+grace)
		s.Stop(t)
	})
}

// inTurn makes n connections, one after another, and gives each to do with the random numbers of the seed.
func (s *server) inTurn(seed uint64, n int, do func(c client, random *rand.Rand) error) error {
	random := rand.New(rand.NewPCG(seed, 1))
	for range n {
		c, err := s.connect()
		if err != nil {
			return err
		}
		if err := do(c, random); err != nil {
			return err
		}
	}
	return nil
}

// resetAnywhere resets a connection at a random point: before or after some bytes, with the echo read or unread, before or
// after the half-close.
func resetAnywhere(c client, random *rand.Rand) error {
	said := random.IntN(128 << 10)
	_, _ = c.Write(make([]byte, said))
	if random.IntN(2) == 0 {
		_ = c.CloseWrite()
	}
	if said > 0 && random.IntN(2) == 0 {
		_, _ = c.Read(make([]byte, 1+random.IntN(said)))
	}
	reset(c)
	return nil
}

// visitWhole sends random content and reads its echo.
func visitWhole(c client, random *rand.Rand) error {
	err := whole(c, content(random.Uint64(), random.IntN(8<<10)), 1<<10)
	return errors.Join(err, c.Close())
}

// Most of these are gone before the server has accepted them.
func TestStormOfConnectAndReset(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		s := e.start(t, idle...)
		open, memory := s.warm(t), s.Resident(t)
		require.NoError(t, together(10, func(int) error {
			return s.inTurn(0, 300, func(c client, _ *rand.Rand) error { reset(c); return nil })
		}))
		s.settles(t, open)
		grown := s.Peak(t) - memory
		require.Less(t, grown, 32<<20, "10 KiB for each connection that never was")
		require.NoError(t, whole(s.dial(t), content(1, 1<<20), 1<<20))
		s.Stop(t)
	})
}

// The descriptor of a connection that was reset is the next one's; an event or a byte of the former
// would be seen in the latter, as each has its own content.
func TestDescriptorsUsedAgainUnderChurn(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		s, seed := e.start(t, idle...), rand.Uint64()
		t.Logf("seed %d", seed)
		open := s.warm(t)
		require.NoError(t, together(12, func(i int) error {
			if i%3 == 0 {
				return s.inTurn(seed+uint64(i), 150, resetAnywhere)
			}
			return s.inTurn(seed+uint64(i), 50, visitWhole)
		}))
		s.settles(t, open)
		require.NoError(t, whole(s.dial(t), content(1, 1<<20), 1<<20))
		s.Stop(t)
	})
}
