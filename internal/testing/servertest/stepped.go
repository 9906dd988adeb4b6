package servertest

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// Timeout bounds each wait for an event in tests. When it has passed, something hangs.
const Timeout = 2 * time.Minute

// Stepped is a scheduler that the test steps.
type Stepped struct {
	T    testing.TB
	S    *act.Scheduler
	OS   *OS
	Logs *observer.ObservedLogs
}

// New returns a Stepped that is closed at the end of the test. The test fails if it leaves descriptors open.
func New(t testing.TB, cfg act.Config) *Stepped {
	t.Helper()
	CheckDescriptors(t)
	core, logs := observer.New(zapcore.DebugLevel)
	if cfg.Logger == nil {
		cfg.Logger = zap.New(core)
	}
	l := &Stepped{T: t, S: act.New(cfg), OS: &OS{}, Logs: logs}
	engine.Below.Put(l.S, l.OS)
	t.Cleanup(func() { _ = l.S.Close() }) // a Cut is the business of the tests that cut
	return l
}

// Engine opens and returns the engine of the scheduler.
func (l *Stepped) Engine() engine.Engine {
	e, err := monitor.EngineOf(l.S)
	require.NoError(l.T, err)
	return e
}

// Turn calls f in the only turn of a task.
func (l *Stepped) Turn(f func(t *act.Task)) {
	l.T.Helper()
	done := false
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		f(t)
		done = true
		return act.Done
	}))
	l.Until("the turn", func() bool { return done })
}

// Until steps until f returns true, even if there is no task.
func (l *Stepped) Until(what string, f func() bool) {
	l.T.Helper()
	l.S.Internals().KeepRunning(1)
	defer l.S.Internals().KeepRunning(-1)
	idle := false
	for end := time.Now().Add(Timeout); !f(); {
		if idle {
			time.Sleep(50 * time.Microsecond)
		}
		n, err := l.S.Step(64)
		require.NoError(l.T, err)
		idle = n == 0
		if time.Now().After(end) {
			require.FailNow(l.T, "it did not happen: "+what)
		}
	}
}

// For steps for d, and twenty times at least: on a busy machine other programs may have had all of the time.
func (l *Stepped) For(d time.Duration) {
	l.T.Helper()
	end, looks := time.Now().Add(d), 0
	l.Until("time passes", func() bool {
		looks++
		return looks > 20 && time.Now().After(end)
	})
}

// Stream returns both ends of a connection. network is "tcp" or "unix".
func (l *Stepped) Stream(network string) (monitor.Stream, net.Conn) {
	l.T.Helper()
	fd, peer := l.Pair(network)
	return l.Adopt(fd, peer.LocalAddr()), peer
}

// Adopt makes a Stream of a connected socket, as a connection that was dialled to addr.
func (l *Stepped) Adopt(fd int, addr net.Addr) monitor.Stream {
	l.T.Helper()
	l.Engine()
	l.OS.dialled = fd
	defer func() { l.OS.dialled = 0 }()
	dial, err := l.Engine().Dial(addr, engine.ConnOptions{})
	require.NoError(l.T, err)
	stream, err := dial.Stream()
	require.NoError(l.T, err)
	return stream
}

// Conn is Stream with a listener.Conn.
func (l *Stepped) Conn(network string, limits listener.Limits) (*listener.Conn, net.Conn) {
	l.T.Helper()
	stream, peer := l.Stream(network)
	return listener.NewConn(l.S, stream, limits), peer
}

// Pair returns both ends of a connection. The peer's calls fail after Timeout; it is closed with the test.
func (l *Stepped) Pair(network string) (fd int, peer net.Conn) {
	l.T.Helper()
	at := "127.0.0.1:0"
	if network == "unix" {
		at = filepath.Join(ShortDir(l.T), "s")
	}
	ln, err := net.Listen(network, at)
	require.NoError(l.T, err)
	defer func() { _ = ln.Close() }()
	if network == "unix" {
		fd, _, err = l.OS.DialUnix(at)
	} else {
		fd, _, err = l.OS.DialTCP(netip.MustParseAddrPort(ln.Addr().String()))
		_ = l.OS.SetNoDelay(fd, true) // as the engine does
	}
	require.NoError(l.T, err)
	for {
		peer, err = ln.Accept()
		require.NoError(l.T, err)
		if network == "unix" || peer.RemoteAddr().String() == l.OS.LocalAddr(fd).String() {
			break
		}
		_ = peer.Close() // of another program, which has dialled a port that was its own before
	}
	require.NoError(l.T, peer.SetDeadline(time.Now().Add(Timeout)))
	l.T.Cleanup(func() { _ = peer.Close() })
	return fd, peer
}

// Dial connects for the length of the test. Calls of the connection fail after Timeout.
func Dial(t testing.TB, at net.Addr) net.Conn {
	t.Helper()
	c, err := net.DialTimeout(at.Network(), at.String(), Timeout)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(Timeout)))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Vacant returns an address at which nothing listens. A socket has the port until the end of the test, so that no other
// program gets it and listens.
func Vacant(t testing.TB) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := d.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().(*net.TCPAddr).AddrPort()
}

// ShortDir returns a temporary directory. Its name is shorter than that of t.TempDir, for the paths of sockets.
func ShortDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "daimon")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// CheckDescriptors fails the test if it leaves descriptors open. Call it first, so that it checks last. Other goroutines, and
// Groups that run, may have one open for a moment: they have time to close theirs.
func CheckDescriptors(t testing.TB) {
	StartRuntimePoller()
	before := descriptors(t)
	t.Cleanup(func() {
		after := descriptors(t)
		for end := time.Now().Add(Timeout); len(after) > len(before) && time.Now().Before(end); after = descriptors(t) {
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, len(after), len(before), "descriptors: %v became %v", before, after)
	})
}

// descriptors lists the open descriptors, its own among them.
func descriptors(t testing.TB) (open []string) {
	entries, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	for _, e := range entries {
		open = append(open, e.Name())
	}
	return open
}

// StartRuntimePoller lets the runtime open the descriptors of its own poller now, and not in the middle of a test that
// counts descriptors.
func StartRuntimePoller() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.Close()
		_ = w.Close()
	}
}

// Send writes text. It takes at most Timeout.
func Send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(Timeout)))
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// Expect reads exactly text. It takes at most Timeout.
func Expect(t testing.TB, c net.Conn, text string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(Timeout)))
	got := make([]byte, len(text))
	n, err := io.ReadFull(c, got)
	require.NoError(t, err, "after %q", got[:n])
	require.Equal(t, text, string(got))
}

// Echo sends text, and requires that it comes back.
func Echo(t testing.TB, c net.Conn, text string) {
	t.Helper()
	Send(t, c, text)
	Expect(t, c, text)
}

// ExpectEOF requires that the peer has sent nothing more and closes. It takes at most Timeout.
func ExpectEOF(t testing.TB, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(Timeout)))
	rest, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Empty(t, string(rest))
}

// Reset resets a TCP connection.
func Reset(t testing.TB, c net.Conn) {
	t.Helper()
	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	require.NoError(t, c.Close())
}

// InTime fails the test if f has not returned after twice Timeout.
func InTime(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(2 * Timeout):
		require.FailNow(t, "hangs")
	}
}

// Receive receives a value within Timeout.
func Receive[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(Timeout):
		require.FailNow(t, "nothing came")
	}
	return v
}

// Strategies returns the idle strategies, by the names that -idle of package program has for them.
func Strategies() map[string]act.Strategy {
	return map[string]act.Strategy{
		"interrupt": nil, "poll": demon.Pause(time.Millisecond), "hybrid": demon.Hybrid(50 * time.Microsecond), "busy": demon.Busy(),
	}
}

// UnderEach runs f once under each idle strategy, with two schedulers.
func UnderEach(t *testing.T, f func(t *testing.T, cfg act.Config)) {
	for name, idle := range Strategies() {
		t.Run(name, func(t *testing.T) { f(t, act.Config{Schedulers: 2, Idle: idle}) })
	}
}

// Step steps s until nothing is ready.
func Step(t testing.TB, s *act.Scheduler) {
	t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = s.Step(1000)
		require.NoError(t, err)
	}
}

// Running is a Group in Run, on threads of its own.
type Running struct {
	T     testing.TB
	Group *act.Group
	Logs  *observer.ObservedLogs

	cancel context.CancelFunc // of the present Run
	ended  chan error
	over   bool
}

// Start runs a new Group with setup, and returns when all its schedulers have taken a turn. The test fails if it leaves
// descriptors open.
func Start(t testing.TB, cfg act.Config, setup ...func(*act.Scheduler) error) *Running {
	t.Helper()
	CheckDescriptors(t)
	core, logs := observer.New(zapcore.DebugLevel)
	if cfg.Logger == nil {
		cfg.Logger = zap.New(core)
	}
	r := &Running{T: t, Group: act.NewGroup(cfg), Logs: logs, over: true}
	t.Cleanup(r.close)
	r.Run(setup...)
	return r
}

// Run runs the Group again, after End, and returns when it takes turns.
func (r *Running) Run(setup ...func(*act.Scheduler) error) {
	t := r.T
	t.Helper()
	begun := make(chan struct{}, len(r.Group.Schedulers()))
	setup = append(setup[:len(setup):len(setup)], func(s *act.Scheduler) error {
		s.Post(func(*act.Scheduler) { begun <- struct{}{} })
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended, r.over = cancel, make(chan error, 1), false
	go func() { r.ended <- r.Group.Run(ctx, setup...) }()
	for range r.Group.Schedulers() {
		select {
		case <-begun:
		case err := <-r.ended:
			r.ended <- err // for End
			select {
			case <-begun: // it has ended already
			default:
				r.over = true
				require.FailNow(t, "the Group did not begin", "%v", err)
			}
		case <-time.After(Timeout):
			require.FailNow(t, "the Group does not begin")
		}
	}
}

// On calls f on a scheduler's thread and waits for it.
func (r *Running) On(index int, f func(*act.Scheduler)) {
	r.T.Helper()
	done := make(chan struct{})
	require.NoError(r.T, r.Group.Schedulers()[index].Post(func(s *act.Scheduler) {
		defer close(done)
		f(s)
	}))
	select {
	case <-done:
	case <-time.After(Timeout):
		require.FailNow(r.T, "a posted function does not run")
	}
}

// End waits for the end of Run.
func (r *Running) End() error {
	r.T.Helper()
	select {
	case err := <-r.ended:
		r.cancel()
		r.over = true
		return err
	case <-time.After(3 * Timeout): // a Run may have much to do
		require.FailNow(r.T, "Run does not end")
		return nil
	}
}

func (r *Running) close() {
	if !r.over {
		r.cancel()
		r.Group.Shutdown(Cut)
		<-r.ended
	}
	_ = r.Group.Close() // a Cut is the business of the tests that cut
}

// Clock is an act.Clock that stands still unless a test moves it. It begins at a moment in 2026. Any goroutine may call its
// methods, and the zero value is ready to use.
type Clock struct{ now atomic.Int64 }

// Monotonic returns how far the test has moved the clock.
func (c *Clock) Monotonic() time.Duration { return time.Duration(c.now.Load()) }

// Wall returns that time as a date.
func (c *Clock) Wall() time.Time {
	return time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC).Add(c.Monotonic())
}

// Pass lets d pass.
func (c *Clock) Pass(d time.Duration) { c.now.Add(int64(d)) }

// Cut ends a Run at once and drops the remaining tasks.
var Cut = shutdown.Policy{Kind: shutdown.Halt, Drop: true}

// Drain lets a Run end by itself.
var Drain = shutdown.Policy{Time: Timeout, Drop: true}

// TurnEnd is an act.TurnEnder made of a function.
type TurnEnd func()

// TurnEnd calls f.
func (f TurnEnd) TurnEnd() { f() }

// Waits returns a task that calls first and waits. In its next turn it adds 1 to woken and ends.
func Waits(first func(t *act.Task), woken *int) act.Func {
	begun := false
	return func(t *act.Task) act.Directive {
		if begun {
			*woken++
			return act.Done
		}
		begun = true
		first(t)
		return act.Wait
	}
}
