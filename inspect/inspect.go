package inspect

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
)

const (
	// patience is how long a scheduler has to answer.
	patience = 100 * time.Millisecond
	// fresh is how old a Report may be that is given to a second viewer.
	fresh = time.Second
	// ofTasks and ofATask say how old findings about tasks may be in an answer to a question without tasks: the longer
	// of ofTasks, and ofATask for each task. To ask for a task takes about 10 µs, so an open page takes half a percent
	// of a CPU for that, however many there are.
	ofTasks = 5 * time.Second
	ofATask = 2 * time.Millisecond
)

// Inspector observes the schedulers of one Group, and serves pages about them. The zero Inspector serves none, and only
// reports stalls. With package program it is an Option:
//
//	program.Serve("127.0.0.1:7007", handler, &inspect.Inspector{}) // -inspect
//
// Without package program, call Configure before the Group is made, pass Setup as the first set-up function, and call
// Close when Run has returned. The fields must not be changed from Configure on. All methods but Setup are for any
// goroutine.
type Inspector struct {
	// Address is where the pages are served, "host:port"; if it is not a loopback address, set Token. If it is empty,
	// nothing is served. The pages have a scheduler of their own, which accepts from Setup on: in an upgrade the pages
	// of the new program answer a moment before it takes over.
	Address string
	// Token must be in each request for data, as ?token= or as "Authorization: Bearer". If it is empty a random one is
	// made and logged with the address, which must then be a loopback address.
	Token string
	// Watch sets when a turn that takes too long is reported in the log; the zero Watch reports after 50 ms. A Group that is
	// stepped, or has a Clock of its own, has no watchdog.
	Watch Watch
	// Dir is a directory for recordings of what has just happened. A file is written when an action, a process or a
	// posted function panics, when a stall is reported, and on SIGUSR1: it has the Report as text, and the last events
	// of all schedulers. Without a Dir no file is written, and SIGUSR1 ends the program, as it does by default.
	//
	// The latest 16 files are kept, of all programs that use the directory. For each of the three reasons up to 4 files
	// are written at once, and each of the four makes room for another after a minute; further ones are only counted. A
	// file contains no bytes of a connection, and no text of a panic. Like the log, it has the addresses of the connection that has
	// stalled. The program never waits for the disk; an error of the disk is one line in the log.
	Dir string
	// Sources add metrics of your own to /metrics. They are called at each request.
	Sources []MetricSource

	off  bool // unless the flags say otherwise
	site *site
	tcp  service.Listener // of the pages

	watching bool
	watchdog *watchdog // nil if there is none
	recorder *recorder // nil if there is none

	mu     sync.Mutex // a census has it, for longer than patience
	clock  act.Clock
	desks  []*desk
	given  *report       // the latest
	polled time.Duration // when tasks were asked for
}

// Configure adds the Inspector's Trace to cfg, in addition to one that is set. Call it once, before [act.NewGroup] or
// [act.Run].
func (x *Inspector) Configure(cfg *act.Config) {
	if x.off = x.off && x.Address == "" && x.Dir == ""; x.off {
		return
	}
	cfg.Trace = act.MultiTrace(cfg.Trace, trace)
	x.watching = cfg.Threads != act.Stepped && cfg.Clock == nil
}

// Setup is a set-up function for [act.Run], called once for each scheduler. The first call opens the address and begins
// to serve the pages; it fails if it cannot.
func (x *Inspector) Setup(s *act.Scheduler) error {
	if x.off {
		return nil
	}
	p := probes.Get(s)
	p.bind()
	if d := x.observe(p, s); d != nil {
		s.Attach(d) // without the lock: the Trace is called
	}
	if x.recorder != nil && len(asks) > 0 {
		if err := monitor.OnSignal(x.recorder, asks...)(s); err != nil {
			return err
		}
	}
	if x.site != nil || x.Address == "" {
		return nil
	}
	var err error
	x.site, err = x.serve(s.Logger())
	return err
}

// observe has the recorder and the watchdog observe s, and returns a desk for it; nil if it has one, because the Group has run
// before.
func (x *Inspector) observe(p *probe, s *act.Scheduler) *desk {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.Dir != "" && x.recorder == nil {
		x.recorder = newRecorder(x, s.Logger())
	}
	p.recorder = x.recorder
	if x.watching && x.watchdog == nil {
		if x.watchdog = newWatchdog(x.Watch, x.recorder, s.Logger()); x.watchdog != nil {
			x.watchdog.start()
		}
	}
	if x.watchdog != nil {
		x.watchdog.watch(&p.watched, s.Index())
	}
	if slices.ContainsFunc(x.desks, func(d *desk) bool { return d.probe == p }) {
		return nil
	}
	d := newDesk(p)
	x.clock, x.desks = s.Clock(), append(x.desks, d)
	return d
}

// Close ends the watchdog and the pages, and finishes the files that are being written. It waits until all of them have
// ended, except for a disk that does not answer for two seconds.
func (x *Inspector) Close() error {
	if x.watchdog != nil {
		x.watchdog.close()
	}
	if x.recorder != nil {
		x.recorder.close()
	}
	if x.site != nil {
		x.site.close()
	}
	return nil
}

// Handover is for package upgrade, which passes the listening sockets of the pages to the newer program. Programs do not call
// it.
func (x *Inspector) Handover() handover.Listener {
	if x.Address == "" {
		return nil
	}
	x.tcp.Name, x.tcp.Address = "inspect", x.Address
	return x.tcp.Handover()
}

// Report returns what all schedulers are doing, in JSON, as docs/inspect.md describes it. The answers come between two turns; a
// scheduler that gives none in 100 ms has its latest one in the Report. That answer may be one that came too late for the Report
// before. A Report is made once a second at most, and is empty before Setup. Report blocks, so any goroutine may call it except
// the schedulers' own.
func (x *Inspector) Report() json.RawMessage {
	text, err := json.Marshal(x.report(false, true))
	if err != nil {
		panic(err) // there is nothing in it that has no form in JSON
	}
	return text
}

// inspected returns the desks of all schedulers, and their clock.
func (x *Inspector) inspected() ([]*desk, act.Clock) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.desks), x.clock
}

// report asks all schedulers, for tasks one by one or only counted. A report that is less than a second old is given
// again, so that many viewers cost no more than one. With findings, the findings about tasks are at most as old as
// seen.rest.
func (x *Inspector) report(tasks, findings bool) *report {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.desks) == 0 {
		return &report{} // before Setup
	}
	now := x.clock.Monotonic()
	r := x.given
	poll := tasks || findings && (r == nil || r.seen == nil || now-x.polled >= r.seen.rest)
	if r == nil || now-r.asked >= fresh || poll && !r.tasks {
		r = x.census(poll)
		r.asked = now
		x.find(r, x.given)
		if x.given = r; poll {
			x.polled = now
		}
	}
	return r
}

// snapshot is a Report of now that has no other user.
func (x *Inspector) snapshot() *report {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.desks) == 0 {
		return &report{} // before Setup
	}
	r := x.census(false)
	x.find(r, nil)
	return r
}

// census asks all schedulers. The caller has the lock, as that of find.
func (x *Inspector) census(tasks bool) *report {
	questions := make([]*question, len(x.desks))
	now := x.clock.Monotonic()
	if tasks && slices.ContainsFunc(x.desks, func(d *desk) bool {
		q := d.latest.Load()
		return q.report.Counts == nil || now-q.at >= ofTasks
	}) {
		x.census(false) // it says how much room is needed
	}
	for i, d := range x.desks {
		questions[i] = d.ask(tasks)
	}
	r := &report{Time: x.clock.Wall(), tasks: tasks}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, d := range x.desks {
		answers := questions[i].wait(ctx)
		if answers && tasks && !questions[i].tasks { // it was an earlier one, for a Report without tasks
			answers = d.ask(true).wait(ctx)
		}
		q := d.latest.Load()
		s := *q.scheduler() // a copy: the next Report may have the same answer, with another state
		if !answers {
			s.Late = x.clock.Monotonic() - q.at
		}
		s.State = d.probe.state()
		if !tasks { // the latest answer may have them
			s.tasks, s.processes = nil, nil
		}
		r.Schedulers = append(r.Schedulers, &s)
	}
	return r
}

// find adds findings, compared with the Report before, and the observations of the watchdog and the recorder.
func (x *Inspector) find(r, before *report) {
	r.Findings = r.find(before)
	if x.watchdog != nil {
		r.Stalls = x.watchdog.stalls()
		r.Findings = append(r.Stalls.findings(), r.Findings...)
	}
	if x.recorder != nil {
		r.Recordings = x.recorder.recordings()
	}
}

// wait reports whether the answer has come before ctx ends.
func (q *question) wait(ctx context.Context) bool {
	select {
	case <-q.answer:
		return true
	case <-ctx.Done():
		return false
	}
}

// state returns what the scheduler is doing now. Any goroutine.
func (p *probe) state() string {
	now := p.sight()
	switch {
	case now.state() == turn:
		return "in a turn of " + now.kind
	case now.state() == pass:
		return "in a pass"
	case now.state() == asleep && p.s.Internals().Rests():
		return "asleep"
	case now.state() == asleep:
		return "waking up"
	}
	return "not running"
}
