package gateway

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/shutdown"
)

// health is what is known of a back end. All schedulers use it. A back end is out before the time since, and its weight grows
// after it.
type health struct {
	since    atomic.Int64 // on the schedulers' clock; 0: it never was out; down: until checks succeed
	times    atomic.Int32 // how often it was out in a row
	failures atomic.Int32 // in a row
	log      atomic.Pointer[zap.Logger]
	cause    atomic.Pointer[error] // of the latest failure
}

const (
	down    = math.MaxInt64
	mostOut = 5 * time.Minute
)

// out reports whether the back end is left out.
func (h *health) out(now time.Duration) bool { return int64(now) < h.since.Load() }

// share is the part of its weight that a back end has, from 0.1 to 1.
func (h *health) share(now, back time.Duration) float64 {
	since := time.Duration(h.since.Load())
	back = cmp.Or(back, 10*time.Second)
	if since == 0 || now < since || now-since >= back {
		return 1
	}
	return max(0.1, float64(now-since)/float64(back))
}

// note takes the outcome of a request into account. What was begun before the back end was left out does not count.
func (b *backend) note(now time.Duration, good bool) {
	h := &b.state
	since := h.since.Load()
	switch limit := cmp.Or(b.Health.Failures, 5); {
	case int64(now) < since:
	case good:
		if h.failures.Load() != 0 {
			h.failures.Store(0)
		}
		if n := h.times.Load(); n != 0 && now-time.Duration(since) >= b.howLong(n-1) {
			h.times.Store(0)
		}
	case limit > 0 && int(h.failures.Add(1)) >= limit:
		n := h.times.Load()
		if h.since.CompareAndSwap(since, int64(now+b.howLong(n))) { // and not another scheduler
			h.times.Store(n + 1)
			h.failures.Store(0)
			b.outs.Add(1)
			fields := []zap.Field{zap.Int("failures", limit), zap.Duration("for", b.howLong(n))}
			if cause := h.cause.Load(); cause != nil {
				fields = append(fields, zap.NamedError("the last", *cause))
			}
			b.say("a back end is left out", fields...)
		}
	}
}

// howLong returns how long a back end is left out that was n times in a row.
func (b *backend) howLong(n int32) time.Duration {
	d := cmp.Or(b.Out, 10*time.Second)
	return max(d, min(d<<min(n, 10), mostOut))
}

func (b *backend) say(what string, fields ...zap.Field) {
	if log := b.state.log.Load(); log != nil {
		log.Warn(what, append(fields, zap.String("group", b.group), zap.String("address", b.Address))...)
	}
}

// checker is a demon that checks a back end on the first scheduler.
type checker struct {
	b         *backend
	call      *client.Call // nil: between two
	next      time.Duration
	timer     act.Timer
	good, bad int // in a row
	told      bool
}

// Act begins a check when its time has come, and takes its result.
func (c *checker) Act(t *act.Task) act.Directive {
	now := t.Scheduler().Now()
	if c.told || c.b.tables.Load() == 0 {
		if c.call != nil {
			_ = c.call.Close()
		}
		return act.Done
	}
	if c.call == nil && now >= c.next {
		c.next = now + cmp.Or(c.b.Interval, 5*time.Second)
		c.call = &client.Call{Origin: c.b.probe, Target: c.b.Path}
		c.call.Add("User-Agent", "daimon-gateway")
		if c.b.Proxy > 0 {
			c.call.Filter = proxyproto.Client(proxyproto.Header{Version: c.b.Proxy})
		}
	}
	if c.call != nil {
		switch d := c.call.Act(t); d {
		case act.Done:
			r, err := c.call.Response(), error(nil)
			if r.Status() >= 400 {
				err = fmt.Errorf("status %d", r.Status())
			}
			_ = r.Close()
			c.result(now, err)
		case act.Failed:
			c.result(now, t.Err())
		default:
			return d
		}
	}
	t.WakeAt(&c.timer, c.next)
	return act.Wait
}

// result counts the result of a check.
func (c *checker) result(now time.Duration, err error) {
	b, since := c.b, &c.b.state.since
	c.call = nil
	if err == nil {
		c.bad = 0
		if c.good++; since.Load() == down && c.good >= cmp.Or(b.Rise, 2) {
			since.Store(int64(now))
			b.state.failures.Store(0)
			b.say("a back end is back")
		}
		return
	}
	c.good = 0
	if c.bad++; since.Load() != down && c.bad >= cmp.Or(b.Fall, 3) {
		since.Store(down)
		b.outs.Add(1)
		b.say("a back end is left out", zap.NamedError("check", err))
	}
}

// Stop ends the checks with a shutdown.
func (c *checker) Stop(*act.Task, shutdown.Order) { c.told = true }

// Describe implements act.Describer.
func (c *checker) Describe(d *act.Description) {
	d.Name = "gateway: checks of " + c.b.Address
	if c.call != nil {
		d.Of(c.call)
	}
}
