package inspect

import (
	"cmp"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/netpoll"
)

// Watch sets when the watchdog reports a stall: a turn, or work of the scheduler itself between turns, that takes too
// long. The zero Watch reports after 50 ms.
type Watch struct {
	// Limit is how long a turn, or the scheduler's own work between turns, may take: 50 ms if it is 0, and at least 10
	// ms. The watchdog checks twice in this time, so a stall is reported when it has lasted 1 to 1.5 times as long.
	// While all schedulers sleep it checks once in twice this time: the first stall after that is reported when it has
	// lasted at most 3 times as long. A Limit less than 0 switches the watchdog off.
	Limit time.Duration

	// When a stall has lasted for Then, the watchdog calls Stalled on its own goroutine, once for each stall, with the
	// stall as in "stalls" of /json. While Stalled runs, no other stall is noticed. It may end the program. If Then is 0,
	// Stalled is not called.
	Then    time.Duration
	Stalled func(stall json.RawMessage)
}

// again is when a stall that goes on is examined and reported again.
const again = time.Second

// idleTicks are between two polls while all schedulers sleep. Most of the cost of a poll is that a thread wakes up for
// it.
const idleTicks = 4

// watchdog polls all schedulers of a Group from one goroutine of its own. Schedulers never wait for it: they only store
// what is in their watched.
type watchdog struct {
	limits   []limit // the shortest first
	tick     time.Duration
	next     time.Duration // until the next poll: tick, or idleTicks of them
	log      *zap.Logger
	recorder *recorder // nil if there is none
	last     time.Time // of the latest poll

	reports limiter

	mu     sync.Mutex
	seen   []*record
	ledger ledger

	end, ended chan struct{} // nil until start
}

// limit is a function to call when a stall has lasted that long.
type limit struct {
	after time.Duration
	do    func(*watchdog, *record, time.Time)
}

// record is the watchdog's knowledge of one scheduler.
type record struct {
	*watched
	index int
	observed
}

// observed is what the watchdog has seen of the turn or pass that a scheduler is in. It belongs to the watchdog's goroutine;
// the rest of a record never changes.
type observed struct {
	now   sighting  // the latest
	since time.Time // when it was first seen
	until time.Time // when it was last seen

	// age is how long it has been seen. Time in which the watchdog itself was late is left out: it says nothing about the
	// scheduler.
	age    time.Duration
	passed int    // limits
	stall  *stall // in the ledger; nil if none was reported

	before   glance // of the thread, when the same sighting was seen for the second time
	beforeAt time.Time
}

// newWatchdog returns a watchdog that is closed in the end; nil if w does not want one.
func newWatchdog(w Watch, files *recorder, log *zap.Logger) *watchdog {
	if w.Limit < 0 {
		return nil
	}
	first := max(cmp.Or(w.Limit, 50*time.Millisecond), 10*time.Millisecond)
	d := &watchdog{
		limits: []limit{{first, (*watchdog).report}},
		tick:   first / 2, next: first / 2, log: log, recorder: files,
	}
	if first < again {
		d.limits = append(d.limits, limit{again, (*watchdog).reportAgain})
	}
	if w.Then > 0 && w.Stalled != nil {
		d.limits = append(d.limits, limit{w.Then, func(d *watchdog, r *record, now time.Time) {
			d.examine(r, now)
			w.Stalled(r.stall.json())
		}})
	}
	slices.SortStableFunc(d.limits, func(a, b limit) int { return cmp.Compare(a.after, b.after) })
	return d
}

// watch adds a scheduler. Any goroutine.
func (d *watchdog) watch(w *watched, index int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.seen, func(r *record) bool { return r.watched == w }) {
		return // it is run again
	}
	d.seen = append(d.seen, &record{watched: w, index: index})
}

// start begins to poll, until close is called.
func (d *watchdog) start() {
	d.end, d.ended = make(chan struct{}), make(chan struct{})
	go d.run()
}

// run is the goroutine of the watchdog.
func (d *watchdog) run() {
	defer close(d.ended)
	ticker := time.NewTicker(d.tick)
	defer ticker.Stop()
	for {
		before := d.next
		if d.poll(time.Now()); d.next != before {
			ticker.Reset(d.next)
		}
		select {
		case <-ticker.C:
		case <-d.end:
			return
		}
	}
}

// close is called once. It waits for the present poll.
func (d *watchdog) close() {
	if d.end != nil {
		close(d.end)
		<-d.ended
	}
}

// stalls returns the stalls that were seen. Any goroutine.
func (d *watchdog) stalls() stalls {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ledger.snapshot()
}

// poll polls all schedulers once.
func (d *watchdog) poll(now time.Time) {
	gap := d.passed(now)
	d.next = idleTicks * d.tick
	for _, r := range d.records() {
		if !d.pollOne(r, now, gap) {
			d.next = d.tick
		}
	}
}

// records returns the records of all schedulers.
func (d *watchdog) records() []*record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[:len(d.seen):len(d.seen)] // others may be added meanwhile
}

// passed returns the time since the latest poll, as far as it counts for the schedulers. If that is much more than a
// tick, the watchdog was late, and so may all of the process have been.
func (d *watchdog) passed(now time.Time) time.Duration {
	gap := now.Sub(d.last)
	first := d.last.IsZero()
	d.last = now
	late := gap - d.next
	if first || late <= d.tick {
		return max(gap, 0)
	}
	d.mu.Lock()
	d.ledger.Late++
	d.ledger.Latest = max(d.ledger.Latest, late)
	d.mu.Unlock()
	return d.tick
}

// pollOne polls one scheduler. It reports whether that has slept since the latest poll.
func (d *watchdog) pollOne(r *record, now time.Time, gap time.Duration) bool {
	if x := r.sight(); x.seq != r.now.seq {
		d.goesOn(r)
		r.observed = observed{now: x, since: now, until: now}
		return false
	}
	if s := r.now.state(); s != turn && s != pass {
		return true
	}
	r.until = now
	r.age += gap
	if r.beforeAt.IsZero() {
		r.before, r.beforeAt = glanceAt(r.tid.Load()), now
	}
	for r.passed < len(d.limits) && r.age >= d.limits[r.passed].after {
		d.limits[r.passed].do(d, r, now)
		r.passed++
	}
	return false
}

// goesOn is called when the turn or pass has ended. It has begun up to one tick before since, and has ended up to one tick
// after until.
func (d *watchdog) goesOn(r *record) {
	if r.passed == 0 {
		return
	}
	lasted := r.until.Sub(r.since) + d.tick
	d.mu.Lock()
	d.ledger.Durations.add(lasted)
	if r.stall != nil {
		r.stall.Lasted, r.stall.Ended = lasted, true
	}
	d.mu.Unlock()
	if r.stall != nil {
		d.log.Info(r.stall.what()+" that held up its scheduler has ended", zap.Int("scheduler", r.index),
			zap.Duration("lasted", lasted), zap.String("kind", r.stall.Kind), zap.Uint32("task", r.stall.Task))
	}
}

func (d *watchdog) report(r *record, now time.Time) {
	if !d.reports.allow(now) {
		d.mu.Lock()
		d.ledger.Suppressed++
		d.mu.Unlock()
		return
	}
	d.examine(r, now)
	d.mu.Lock()
	r.stall.File = d.recorder.stall(r.stall)
	d.mu.Unlock()
	fields := append(r.stall.fields(), zap.Uint64("suppressed so far", d.count()))
	d.log.Warn(r.stall.what()+" holds up its scheduler", fields...)
}

// reportAgain needs no limiter: it comes at most once a second for each scheduler.
func (d *watchdog) reportAgain(r *record, now time.Time) {
	d.examine(r, now)
	d.count()
	d.log.Error(r.stall.what()+" still holds up its scheduler", r.stall.fields()...)
}

func (d *watchdog) count() (suppressed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ledger.Reported++
	return d.ledger.Suppressed
}

// examine finds out what the scheduler is stuck in, and writes it into the ledger. If it goes on meanwhile, what was found
// may belong to what came next, and is left out.
func (d *watchdog) examine(r *record, now time.Time) {
	s := stall{
		Scheduler: r.index,
		Began:     r.since.Add(-d.tick / 2).Round(0),
		Lasted:    now.Sub(r.since) + d.tick/2,
		Cause:     unknown,
		Kind:      r.now.kind,
		Task:      r.now.id,
	}
	found := s
	found.Peer = peerOf(r.now.fd)
	frames := d.stackOf(r, &found, now)
	found.write(frames)
	if r.sight().seq == r.now.seq {
		s = found
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.stall == nil {
		r.stall = &stall{}
		d.ledger.add(r.stall)
	}
	s.File = r.stall.File
	*r.stall = s
}

// peerOf returns the peer of a descriptor, "" if there is none. Since the descriptor was asked for, in this turn or one of the
// latest, the action may have closed it, and another connection may have the number: that is not noticed.
func peerOf(fd int32) string {
	if fd >= 0 {
		if a := (netpoll.System{}).PeerAddr(int(fd)); a != nil {
			return a.String()
		}
	}
	return ""
}

// stackOf finds the cause, and returns the stack where that holds up nobody else:
//
//	blocked in the kernel              none: the call may keep its processor
//	ready, and without a CPU           none: it cannot be stopped before it has one, and the stack would say nothing
//	asleep, nothing further is known   none: it may be in a system call that keeps its processor
//	another scheduler is in the kernel none: that call may keep its processor
//	otherwise                          from the goroutine profile
//
// After the glance a thread may still begin a system call that keeps its processor. Then all goroutines wait for the
// end of that call, as they do when the collector needs to stop them. System calls of Daimon are on non-blocking
// descriptors and return at once.
func (d *watchdog) stackOf(r *record, s *stall, now time.Time) []runtime.Frame {
	g := glanceAt(r.tid.Load())
	s.Cause, s.Detail = judge(r.before, g, now.Sub(r.beforeAt), 2*d.tick)
	switch {
	case g.inKernel(), g.starved(s.Cause):
		return nil
	case d.othersInKernel(r):
		s.Detail = "its stack is not known, since another scheduler is in a system call"
		return nil
	}
	frames := profiled(r.name)
	if cause, detail := resting(frames); cause == collector || s.Cause == parked || s.Cause == unknown {
		if cause != unknown {
			s.Cause, s.Detail = cause, detail
		}
	}
	return frames
}

// othersInKernel reports whether another scheduler has been in the same turn or pass since the previous poll, and is
// blocked in the kernel.
func (d *watchdog) othersInKernel(r *record) bool {
	return slices.ContainsFunc(d.records(), func(other *record) bool {
		if other == r || other.beforeAt.IsZero() || other.sight().seq != other.now.seq {
			return false
		}
		g := glanceAt(other.tid.Load())
		return g.inKernel()
	})
}
