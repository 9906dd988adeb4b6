package inspect

import (
	"context"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
)

const (
	// patience is how long a scheduler has to answer.
	patience = 100 * time.Millisecond
	// fresh is how old a Report may be that is given to a second viewer.
	fresh = time.Second
)

// Inspector looks into the schedulers of one Group. Its Trace has to be in the Group's Config, and its Setup among the set-up
// functions, before those of the services: see [Inspector.Configure]. All its methods but Setup are for any goroutine.
type Inspector struct {
	mu    sync.Mutex
	clock act.Clock
	desks []*desk
	last  []answered // of each of the desks
	given *Report
	tasks bool          // given has them
	at    time.Duration // when it was asked for
}

// answered is the latest answer of a desk.
type answered struct {
	*Scheduler
	at time.Duration // on the clock of the Group
}

// New returns an Inspector.
func New() *Inspector { return &Inspector{} }

// Configure adds to cfg what the Inspector needs. Package program calls it.
func (x *Inspector) Configure(cfg *act.Config) {
	cfg.Trace = act.MultiTrace(cfg.Trace, trace)
}

// Setup is a set-up function as [act.Run] takes it.
func (x *Inspector) Setup(s *act.Scheduler) error {
	p := probes.Get(s)
	p.bind()
	d := &desk{probe: p}
	x.mu.Lock()
	x.clock, x.desks = s.Clock(), append(x.desks, d)
	x.last = append(x.last, answered{&Scheduler{Index: s.Index()}, s.Now()})
	x.mu.Unlock()
	s.Attach(d) // without the lock: the Trace is called
	return nil
}

// Report asks all schedulers what they are doing, with tasks one by one, or only counted. The answers come between two turns;
// a scheduler that gives none in 100 ms has its latest one in the Report. A Report that is less than a second old is given
// again, so that many viewers cost no more than one. The caller must not change it.
func (x *Inspector) Report(tasks bool) *Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.desks) == 0 {
		return &Report{} // before Setup
	}
	now := x.clock.Monotonic()
	if x.given != nil && now-x.at < fresh && (x.tasks || !tasks) {
		return x.given
	}
	questions := make([]*question, len(x.desks))
	for i, d := range x.desks {
		questions[i] = d.ask(tasks)
	}
	r := &Report{Time: x.clock.Wall()}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, d := range x.desks {
		answer := questions[i].wait(ctx)
		if answer != nil {
			x.last[i] = answered{answer, x.clock.Monotonic()}
		}
		s := *x.last[i].Scheduler // a copy: the next Report may have the same answer, with another state
		if answer == nil {
			s.Late = x.clock.Monotonic() - x.last[i].at
		}
		s.State = d.probe.state()
		r.Schedulers = append(r.Schedulers, &s)
	}
	x.given, x.tasks, x.at = r, tasks, now
	return r
}

// wait returns the answer, nil if none has come when ctx ends.
func (q *question) wait(ctx context.Context) *Scheduler {
	select {
	case answer := <-q.answer:
		return answer
	case <-ctx.Done():
	}
	select {
	case answer := <-q.answer:
		return answer
	default:
		return nil
	}
}

// state returns what the scheduler is doing now. Any goroutine.
func (p *probe) state() string {
	now := p.sight()
	switch {
	case now.state() == turn && now.kind != nil:
		return "in a turn of " + *now.kind
	case now.state() == pass:
		return "in a pass"
	case hook.Rests(p.s) && now.state() == asleep:
		return "asleep"
	}
	return "not running"
}
