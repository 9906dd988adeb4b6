package inspect

import (
	"cmp"
	"context"
	"flag"
	"slices"
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

// Inspector looks into the schedulers of one Group, and serves what it sees. With package program it is one of the services,
// the first:
//
//	inspector := inspect.Flag() // -inspect
//	server.Parse()
//	server.Run(inspector, server.Listen(server.Addr, handler))
//
// Without it, Configure comes before the Group is made, Setup is the first of the set-up functions, and Close follows when Run
// has returned. The fields must not be changed from Configure on. All methods but Setup are for any goroutine.
type Inspector struct {
	// Address is where the pages are served, "host:port". If it is empty there are none.
	Address string
	// Token is what a request for a page has to bring, as ?token= or as "Authorization: Bearer". If it is empty a random one
	// is logged together with the address, which must be one of this machine alone (loopback) then.
	Token string
	// Watch says which turns are reported in the log because they take too long. A Group that is stepped, or has a Clock of
	// its own, has no watchdog.
	Watch Watch

	off    bool // the flag is empty
	places int  // for offloaded functions; 0: unknown
	site   *site

	watching bool
	watchdog *watchdog // nil if there is none

	mu     sync.Mutex
	clock  act.Clock
	desks  []*desk
	last   []answered // of each of the desks
	given  *Report
	before *Report       // the one before
	tasks  bool          // given has them
	at     time.Duration // when it was asked for
}

// answered is the latest answer of a desk.
type answered struct {
	*Scheduler
	at time.Duration // on the clock of the Group
}

// Flag returns an Inspector that does nothing unless the flag -inspect says where it serves its pages. It is called before
// [flag.Parse].
func Flag() *Inspector {
	x := &Inspector{}
	flag.StringVar(&x.Address, "inspect", "",
		"the `address` of pages that show what the server is doing, such as 127.0.0.1:6060; empty: none")
	flag.StringVar(&x.Token, "inspect-token", "",
		"what requests for these pages have to bring; empty: a random `token`, which is logged")
	x.off = true
	return x
}

// Configure adds to cfg what the Inspector needs.
func (x *Inspector) Configure(cfg *act.Config) {
	if x.off = x.off && x.Address == ""; x.off {
		return
	}
	cfg.Trace = act.MultiTrace(cfg.Trace, trace)
	x.watching = cfg.Threads != act.Stepped && cfg.Clock == nil
	if cfg.Executor == nil {
		x.places = cmp.Or(cfg.Offloads, defaultOffloads)
	}
}

// defaultOffloads is what act.Config.Offloads means by 0.
const defaultOffloads = 64

// Setup is a set-up function as [act.Run] takes it. The first one begins to serve the pages.
func (x *Inspector) Setup(s *act.Scheduler) error {
	if x.off {
		return nil
	}
	p := probes.Get(s)
	p.bind()
	if d := x.newDesk(p, s); d != nil {
		s.Attach(d) // without the lock: the Trace is called
	}
	x.watch(p, s)
	if x.site != nil || x.Address == "" {
		return nil
	}
	var err error
	x.site, err = x.serve(s.Logger())
	return err
}

// newDesk returns a desk for s; nil if there is one, because the Group has run before.
func (x *Inspector) newDesk(p *probe, s *act.Scheduler) *desk {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.ContainsFunc(x.desks, func(d *desk) bool { return d.probe == p }) {
		return nil
	}
	d := &desk{probe: p}
	x.clock, x.desks = s.Clock(), append(x.desks, d)
	x.last = append(x.last, answered{&Scheduler{Index: s.Index()}, s.Now()})
	return d
}

// watch has the watchdog look at s, from the first scheduler on.
func (x *Inspector) watch(p *probe, s *act.Scheduler) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watching && x.watchdog == nil {
		if x.watchdog = newWatchdog(x.Watch, s.Logger()); x.watchdog != nil {
			x.watchdog.start()
		}
	}
	if x.watchdog != nil {
		x.watchdog.watch(&p.watched, s.Index())
	}
}

// Close ends the watchdog and the pages. Nothing of them is left when it has returned.
func (x *Inspector) Close() error {
	if x.watchdog != nil {
		x.watchdog.close()
	}
	if x.site != nil {
		x.site.close()
	}
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
		known := x.last[i].Counts
		questions[i] = d.ask(tasks, int(known["tasks"]+known["demons"])+64)
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
	x.before, x.given, x.tasks, x.at = x.given, r, tasks, now
	r.Findings = r.find(x.before, x.places)
	if x.watchdog != nil {
		r.Stalls = x.watchdog.stalls()
		r.Findings = append(r.Stalls.findings(), r.Findings...)
	}
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
