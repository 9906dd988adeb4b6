package gateway

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// routeCounts are of the requests of a route, and backendCounts of a back end. All schedulers count together.
type routeCounts struct {
	requests, failed, retries atomic.Uint64
	active                    atomic.Int64
}

type backendCounts struct {
	requests, failed, outs atomic.Uint64
	took                   atomic.Int64
	active                 atomic.Int64 // requests under way
}

// end counts a request that is over, with the status of its answer.
func (r *route) end(status int) {
	r.active.Add(-1)
	if status >= 500 {
		r.failed.Add(1)
	}
	r.table.release()
}

// retry reports whether a request may be passed to another back end, and counts that.
func (r *route) retry(now time.Duration) bool {
	if !r.group.budget.retry(now) {
		return false
	}
	r.retries.Add(1)
	return true
}

// begin counts a request that is passed to the back end.
func (b *backend) begin() {
	b.requests.Add(1)
	b.active.Add(1)
}

// outcome is how a request has ended at a back end.
type outcome uint8

const (
	aborted outcome = iota // it says nothing about the back end
	good
	bad
)

// end counts that it is over.
func (b *backend) end(now, took time.Duration, o outcome) {
	b.active.Add(-1)
	b.took.Add(int64(took))
	if o == bad {
		b.failed.Add(1)
	}
	if o != aborted {
		b.note(now, o == good)
	}
}

// listed finds the Gateways of a scheduler for package inspect.
var listed = act.NewLocal(func(s *act.Scheduler) *list { return &list{s: s} })

type list struct {
	s    *act.Scheduler
	all  []*Gateway
	rows []any // that are still to be visited
}

// List implements facts.Lister.
func (l *list) List(again bool, visit func(row any) bool) (more bool) {
	if again {
		l.rows = nil
		for _, g := range l.all {
			l.rows = g.table.Load().list(l.s.Now(), l.rows)
		}
	}
	for i, row := range l.rows {
		if !visit(row) {
			l.rows = l.rows[i+1:]
			return true
		}
	}
	return false
}

// list appends the rows of routes and back ends.
func (t *Table) list(now time.Duration, to []any) []any {
	for _, r := range t.routes {
		to = append(to, &facts.Route{Name: r.name, Group: r.group.name, Active: uint64(r.active.Load()),
			Requests: r.requests.Load(), Failed: r.failed.Load(), Retries: r.retries.Load()})
	}
	for _, b := range t.backends {
		state := "in use"
		if b.state.out(now) {
			state = "left out"
		} else if b.state.share(now, b.Return) < 1 {
			state = "coming back"
		}
		to = append(to, &facts.Backend{Name: b.group + " " + b.Address, State: state, Active: uint64(b.active.Load()),
			Requests: b.requests.Load(), Failed: b.failed.Load(), Outs: b.outs.Load(), Took: time.Duration(b.took.Load())})
	}
	return to
}
