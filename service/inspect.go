package service

import (
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Describe describes the action, then the connection. Some actions describe the connection themselves: equal texts are
// made once.
func (x *session) Describe(d *act.Description) {
	if action, ok := x.action.(act.Describer); ok {
		action.Describe(d)
	}
	x.conn.Describe(d)
	said := d.Internals()
	said.Unread, said.Queued, said.Still = x.conn.Buffered(), said.Queued+x.conn.Queued(), x.Still()
	if said.Peer == (facts.Address{}) {
		said.Peer.Name = x.Peer()
	}
}

// Service returns the name of the service.
func (x *session) Service() string {
	if c := x.config(); c != nil {
		return c.name
	}
	return ""
}

var _ facts.Connected = (*session)(nil)

// Descriptor returns the descriptor of the connection, -1 if there is none.
func (x *session) Descriptor() int {
	if stream, ok := listener.As[interface{ Descriptor() int }](&x.conn); ok {
		return stream.Descriptor()
	}
	return -1
}

// Still returns for how long no byte has gone either way; less than 0: not known.
func (x *session) Still() time.Duration {
	if stream, ok := listener.As[monitor.IdleReporter](&x.conn); ok {
		if since, idle := stream.IdleSince(); idle || since > 0 {
			return max(0, x.conn.Scheduler().Now()-since).Truncate(time.Millisecond)
		}
	}
	return -1
}

func (a *acceptor) Describe(d *act.Description) { d.Of(a.from) }

// Service returns the name of the service.
func (a *acceptor) Service() string { return a.config.name }

// List implements facts.Lister.
func (a *acceptor) List(again bool, visit func(row any) bool) (more bool) {
	here := a.server.here(a.home)
	if !again || len(here) == 0 || here[0] != a { // one row for all sockets of the service
		return false
	}
	row := *a.config.row
	row.Name, row.Open, row.Max = a.config.name, a.server.Conns(), a.server.most()
	for _, a := range here {
		a.refusals(&row)
	}
	visit(&row)
	return false
}

// refusals adds the counts of the listening socket to row.
func (a *acceptor) refusals(row *facts.Service) {
	if a.from != nil {
		full, short := a.from.Refusals()
		row.Full += full
		row.Shortages += short
	}
}

// ended keeps the counts of a. The lock is held.
func (a *acceptor) ended() {
	v := a.server
	a.refusals(a.config.row)
	if !slices.ContainsFunc(v.demons, func(b *acceptor) bool { return a.home == b.home }) {
		e := allEnded.Get(a.home)
		e.forget()
		e.all = append(e.all, endedService{a.config, v.limiter})
	}
}

// ended lists the services of a scheduler that no longer accept but still have connections, and so a row.
type ended struct {
	all  []endedService
	next int // in a List that is under way
}

type endedService struct {
	config  *config
	limiter *engine.Limiter
}

var allEnded = act.NewLocal(func(*act.Scheduler) *ended { return &ended{} })

func (e *ended) forget() {
	e.all = slices.DeleteFunc(e.all, func(x endedService) bool { return x.limiter.Conns() == 0 })
}

// List implements facts.Lister.
func (e *ended) List(again bool, visit func(row any) bool) (more bool) {
	if again {
		e.forget()
		e.next = 0
	}
	for e.next < len(e.all) {
		x := e.all[e.next]
		e.next++
		row := *x.config.row
		row.Name, row.Open, row.Max = x.config.name, x.limiter.Conns(), x.limiter.Max()
		if !visit(&row) {
			return e.next < len(e.all)
		}
	}
	return false
}

// here returns the acceptors of one scheduler.
func (v *Listener) here(s *act.Scheduler) (all []*acceptor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.demons {
		if a.home == s {
			all = append(all, a)
		}
	}
	return all
}
