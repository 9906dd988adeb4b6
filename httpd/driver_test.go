package httpd_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// driver is a scheduler that the test steps, with a clock that the test advances.
type driver struct {
	t    testing.TB
	s    *act.Scheduler
	now  time.Duration
	logs *observer.ObservedLogs // errors
	all  *observer.ObservedLogs // lines of all levels

	around bool // the action of a connection has one around it, which goes on calling it when the protocol has been switched
}

func (d *driver) Monotonic() time.Duration { return d.now }
func (d *driver) Wall() time.Time          { return noon.Add(d.now) }

var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func newDriver(t testing.TB) *driver {
	core, logs := observer.New(zapcore.WarnLevel)
	fine, all := observer.New(zapcore.DebugLevel)
	d := &driver{t: t, logs: logs, all: all}
	d.s = act.New(act.Config{Clock: d, Logger: zap.New(zapcore.NewTee(core, fine))})
	t.Cleanup(func() { _ = d.s.Close() }) // connections that are still open are expected by their tests
	return d
}

// mostTurns is more turns than anything here takes between two events of a connection.
const mostTurns = 5000

// settle steps until no task is ready.
func (d *driver) settle() {
	for turns := 0; turns < mostTurns; {
		n, err := d.s.Step(64)
		if err != nil {
			require.NoError(d.t, err)
		}
		if n < 64 {
			return
		}
		turns += n
	}
	require.FailNow(d.t, "it spins")
}

// pass advances the clock, and runs everything that becomes due.
func (d *driver) pass(by time.Duration) {
	for end := d.now + by; d.now < end; d.settle() {
		next, ok := d.s.NextDeadline()
		if !ok || next > end {
			next = end
		}
		d.now = max(next, d.now+1) // it may be a little early
	}
}

// client is the client's side of a connection to a server.
type client struct {
	*wire
	d       *driver
	host    *host
	verdict act.Directive // of its task; 0: it is not over
	err     error
}

// dial makes a connection to web.
func (d *driver) dial(web *httpd.Server, limits listener.Limits) *client {
	return d.dialOver(web, limits, plainStream)
}

func (d *driver) dialOver(web *httpd.Server, limits listener.Limits, stream func(*wire) monitor.Stream) *client {
	c := &client{d: d, wire: &wire{s: d.s, room: plenty, state: open}}
	conn := listener.NewConn(d.s, stream(c.wire), limits)
	c.host = &host{client: c, conn: conn, action: web.Serve(conn)}
	d.s.Spawn(c.host)
	d.settle()
	return c
}

// send sends the pieces one after the other, each when the server waits for input.
func (c *client) send(pieces ...string) *client {
	for _, p := range pieces {
		c.feed(p)
		c.d.settle()
	}
	return c
}

// endInput ends the client's side.
func (c *client) endInput() *client {
	c.finish(io.EOF)
	c.d.settle()
	return c
}

// received returns what was sent since it was last called.
func (c *client) received() string {
	out := string(c.out)
	c.out = c.out[:0]
	return out
}

// host does what a service does for the action of a connection.
type host struct {
	client *client
	conn   *listener.Conn
	action act.Action
}

func (h *host) Act(t *act.Task) act.Directive {
	d := h.action.Act(t)
	if d.Finished() {
		h.client.verdict = d
		if d == act.Failed {
			h.client.err = t.Err()
		}
		_ = h.conn.Close()
	}
	return d
}

// Replace implements parent.
func (h *host) Replace(old, replacement act.Action) bool {
	if h.client.d.around || h.action != old {
		return false
	}
	h.action = replacement
	return true
}

func (h *host) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := h.action.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

func (h *host) Close() error {
	if h.client.state == open {
		h.conn.Abort()
	}
	if c, ok := h.action.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (h *host) String() string { return act.Name(h.action) }

// Describe says what the action of the connection does, as that of a service does.
func (h *host) Describe(d *act.Description) {
	if x, ok := h.action.(act.Describer); ok {
		x.Describe(d)
	}
}
