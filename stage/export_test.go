package stage

import (
	"context"
	"time"
)

// Work is a claimed task, for tests that take its steps themselves.
type Work = work

// Stepped makes e an engine that does nothing by itself.
func Stepped(e *Engine, now func() time.Duration) { e.host = stepped{now} }

type stepped struct{ clock func() time.Duration }

func (s stepped) now() time.Duration { return s.clock() }
func (stepped) take([]*work)         {}
func (stepped) ring()                {}
func (stepped) settled()             {}
func (stepped) heartbeatNow()        {}
func (stepped) rest(*period)         {}

// Step takes the next step and reports whether it was the last.
func (w *work) Step() (over bool) {
	w.step()
	if w.over() {
		w.e.remove(w)
	}
	return w.over()
}

// Cause is why its context has ended, if it has.
func (w *work) Cause() error { return context.Cause(w.ctx) }

func (e *Engine) Claimed() []*Work { return e.claimed() }
func (e *Engine) Beat()            { e.beat() }
func (e *Engine) Expire()          { e.expire() }

func (e *Engine) Polling() time.Duration { return e.polling() }

// Pollers are the pollers of an engine, for tests that call them themselves.
type Pollers = pollers

func NewPollers(e *Engine, now func() time.Duration) *Pollers { return newPollers(e, e.period, now) }

// Do calls the pollers that are due, and Look calls all.
func (c *pollers) Do(ctx context.Context) time.Duration { return c.do(ctx) }
func (c *pollers) Look(ctx context.Context) time.Duration {
	for _, x := range c.all {
		x.next = c.now()
	}
	return c.do(ctx)
}
