package act

import (
	"slices"
	"sync"
	"time"

	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
)

// drainTick is how often a shutdown is reported.
const drainTick = time.Second

// drain is what the schedulers of a Group know together of their shutdown: see Config.Draining. Each takes a census at
// every tick, and the last one to finish reports the sum. If one does not answer, the others report without it, a tick
// later.
type drain struct {
	mu       sync.Mutex
	begun    time.Duration // when the first scheduler began, of the ones in it
	reported int           // the latest tick that was
	parts    []part        // by scheduler
	calling  sync.Mutex    // of Config.Draining
}

// part is what one scheduler has said.
type part struct {
	in    bool // it is shutting down, or a shutdown is announced
	tick  int
	phase int
	until time.Duration // 0: no bound
	cut   *shutdown.Cut // nil: nothing is left
	ended uint64        // tasks that have ended by now
	told  uint64        // and by the latest report
}

// phases are the values of Phase of a shutdown.Drain. part has an index into them.
var phases = [...]string{"announced", "spreading", "finishing"}

// draining is one scheduler's share of that, from taking a shutdown request in until it is spent.
type draining struct {
	s      *Scheduler
	timer  Timer
	census *census // nil between two ticks
	before []candidate
}

// beginDraining is called when a shutdown request was taken in.
func (s *Scheduler) beginDraining() {
	if s.group.cfg.Draining != nil && s.draining == nil {
		s.draining = &draining{s: s}
		s.draining.await(s.group.drain.join(s))
	}
}

// endDraining is called when no shutdown request is left.
func (s *Scheduler) endDraining() {
	if s.draining != nil {
		s.draining.timer.Stop()
		s.draining = nil
		s.group.drain.leave(s)
	}
}

// await arms the timer for the next tick.
func (x *draining) await(begun time.Duration) {
	x.s.CallAt(&x.timer, begun+((x.s.now-begun)/drainTick+1)*drainTick, x)
}

// Expire takes a step of a census. The next one comes in the next pass.
func (x *draining) Expire() {
	s := x.s
	if s.plan(); s.order == nil && len(s.announced) == 0 {
		s.endDraining()
		return
	}
	if x.census == nil {
		x.census = newCensus(s, true, x.before)
	}
	if x.census.step() {
		s.CallAt(&x.timer, s.now+1, x)
		return
	}
	p := part{in: true, cut: x.census.result(), ended: s.counts.ended}
	p.phase, p.until = s.phase()
	x.before, x.census = x.census.oldest, nil
	begun, report := s.group.drain.publish(s, p)
	x.await(begun)
	if report != nil {
		s.group.drain.calling.Lock()
		defer s.group.drain.calling.Unlock()
		if failed := s.guard(func() { s.group.cfg.Draining(*report) }); failed != nil {
			s.report("Config.Draining", failed)
		}
	}
}

// phase returns how far the shutdown has come, and when it ends at the latest.
func (s *Scheduler) phase() (int, time.Duration) {
	switch {
	case s.order == nil:
		var t terms
		for _, r := range s.announced {
			t = t.with(r.terms, r.at)
		}
		return 0, t.until
	case s.now < s.terms.leave:
		return 1, s.terms.until
	}
	return 2, s.terms.until
}

// join returns when the shutdown began.
func (d *drain) join(s *Scheduler) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.parts, func(p part) bool { return p.in }) {
		d.begun, d.reported = s.now, 0
	}
	d.parts[s.index] = part{in: true, ended: s.counts.ended, told: s.counts.ended}
	return d.begun
}

func (d *drain) leave(s *Scheduler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts[s.index] = part{}
}

// publish adds what s has found, and returns a report if one is due and there is something to say.
func (d *drain) publish(s *Scheduler, p part) (begun time.Duration, report *shutdown.Drain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.tick, p.told = int((s.now-d.begun)/drainTick), d.parts[s.index].told
	d.parts[s.index] = p
	if p.tick > d.reported && len(d.silent(s.group, p.tick)) == 0 {
		d.reported = p.tick
		return d.begun, d.sum(s, p.tick)
	}
	if p.tick > d.reported+1 { // at the previous tick a scheduler did not answer, and has not since
		d.reported = p.tick - 1
		return d.begun, d.sum(s, p.tick-1)
	}
	return d.begun, nil
}

// silent returns the schedulers that have not answered at a tick, including any that has not taken the request in.
func (d *drain) silent(g *Group, tick int) (all []int) {
	for i, other := range g.schedulers {
		if p := &d.parts[i]; p.in && p.tick < tick || !p.in && !other.orders.Empty() && !other.exited.Load() {
			all = append(all, i)
		}
	}
	return all
}

// sum adds up what all have said; nil if nothing is left.
func (d *drain) sum(s *Scheduler, tick int) *shutdown.Drain {
	all := &shutdown.Drain{For: s.now - d.begun, Silent: d.silent(s.group, tick)}
	all.Cut.Order = s.group.Order()
	found, far := len(all.Silent) > 0, 0
	for i := range d.parts {
		p := &d.parts[i]
		if !p.in || p.tick == 0 {
			continue
		}
		far = max(far, p.phase)
		if p.until > 0 && (all.Bound == 0 || p.until-s.now < all.Bound) {
			all.Bound = max(0, p.until-s.now)
		}
		all.Ended += int(p.ended - p.told)
		p.told = p.ended
		if p.cut != nil {
			merge.Add(&all.Cut, p.cut)
			found = true
		}
	}
	if !found {
		return nil
	}
	all.Phase = phases[far]
	return all
}
