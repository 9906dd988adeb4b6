package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/shutdown"
)

// sampled is of how many turns, and of how many wake-ups, one is timed.
const sampled = 64

// probe counts the events of one scheduler, on its thread. Only the state in watched is shared with other goroutines;
// nothing is locked.
type probe struct {
	watched
	s        *act.Scheduler
	index    int
	recorder *recorder     // nil if there is none
	start    time.Duration // when it was made
	rows     []row         // by the place of a task, less one
	kinds    map[string]*kind

	spawned, ended, failed, dropped, woken uint64
	polls, sleeps                          uint64
	idle                                   [facts.Polling + 1]time.Duration // with nothing to do
	turns, wakes                           histogram

	labelled  *kind         // whose label the goroutine has; nil: none
	idleSince time.Duration // less than 0: not in the Idler
	idleUntil time.Duration // the end of the time before; less than 0: not in this Run
	idleTurns uint64        // of the scheduler, then
	turnSince time.Duration // less than 0: the present turn is not timed
	timed     uint64        // turns since the last one that was
	wake      *act.Task     // of the wake-up that is timed, nil if none
	wokenAt   time.Duration
}

// row is kept for each task. Only programs that are inspected pay for it.
type row struct {
	kind       *kind
	born, last uint32 // the beginnings of its first and of its latest turn, in milliseconds since start
	fd         int32  // -1: not known
}

// kind is a kind of action: see Kind of act's internals.
type kind struct {
	kindRow
	number uint32          // of events
	labels context.Context // in CPU profiles; nil until it is needed
}

var probes = act.NewLocal(newProbe)

func newProbe(s *act.Scheduler) *probe {
	p := &probe{
		watched: watched{name: fmt.Sprintf("%d of %p", s.Index(), s.Group())}, s: s, index: s.Index(), start: s.Now(),
		kinds: map[string]*kind{}, idleSince: -1, idleUntil: -1, turnSince: -1,
	}
	s.Internals().Observe(func(what string, stack []byte) {
		p.panicked(fmt.Sprintf("%s of scheduler %d", what, p.index), stack)
	}, p.resumed)
	return p
}

// trace is the Trace of all probes.
var trace = &act.Trace{
	Spawned:   func(t *act.Task) { of(t).taskSpawned(t) },
	TurnStart: func(t *act.Task) { of(t).turnStart(t) },
	TurnEnd:   func(t *act.Task, d act.Directive) { of(t).turnEnd(t, d) },
	Woken:     func(t *act.Task) { of(t).taskWoken(t) },
	Told:      func(t *act.Task, _ shutdown.Order) { of(t).note(of(t).about(told, t)) },
	Ended:     func(t *act.Task, err error) { of(t).taskEnded(t, err) },
	Pass:      func(s *act.Scheduler) { probes.Get(s).passBegin() },
	Idle:      func(s *act.Scheduler, atMost time.Duration) { probes.Get(s).idleBegin(atMost) },
}

func of(t *act.Task) *probe { return probes.Get(t.Scheduler()) }

// row returns that of t. A task that has no place shares the first one.
func (p *probe) row(t *act.Task) *row { return p.rowAt(t, p.s.Internals().Place(t)) }

func (p *probe) rowAt(t *act.Task, n uint32) *row {
	place := int(max(n, 1))
	if place > len(p.rows) {
		p.rows = slices.Grow(p.rows, place-len(p.rows))[:place]
	}
	r := &p.rows[place-1]
	if r.kind == nil { // it was spawned before there was a probe
		p.begin(t, r)
	}
	return r
}

func (p *probe) begin(t *act.Task, r *row) {
	name := p.s.Internals().Kind(t)
	k := p.kinds[name]
	if k == nil {
		k = &kind{kindRow: kindRow{Name: name}, number: p.kindNumber(name)}
		p.kinds[name] = k
	}
	k.Alive++
	k.Spawned++
	*r = row{kind: k, born: p.millis(), last: p.millis(), fd: -1}
}

// millis is the time of the latest pass. It is enough for 49 days, and then begins anew.
func (p *probe) millis() uint32 { return uint32((p.s.Now() - p.start) / time.Millisecond) }

func (p *probe) clock() time.Duration { return p.s.Clock().Monotonic() }

func (p *probe) taskSpawned(t *act.Task) {
	p.spawned++
	p.note(p.about(spawned, t))
}

// about is an event of t.
func (p *probe) about(what event, t *act.Task) event {
	place := p.s.Internals().Place(t)
	return eventOf(what, p.rowAt(t, place).kind.number, place)
}

func (p *probe) taskEnded(t *act.Task, err error) {
	r := p.row(t)
	p.noteEnd(t, err)
	switch {
	case err == act.ErrDropped:
		p.dropped++
	case err != nil:
		p.failed++
		r.kind.Failed++
	}
	p.ended++
	r.kind.Alive--
	r.kind = nil
	if t == p.wake {
		p.wake = nil
	}
}

// noteEnd notes an end that no Directive tells.
func (p *probe) noteEnd(t *act.Task, err error) {
	inItsTurn := p.isTurnOf(p.s.Internals().Place(t))
	cause, panicking := errors.AsType[*act.Panic](err)
	if panicking {
		defer func() { p.panics(p.s.Internals().Place(t), p.row(t).kind.Name, cause.Stack) }() // with the event
	}
	switch {
	case err == nil, inItsTurn && p.present.directive() == act.Failed:
	case err == act.ErrDropped:
		p.note(p.about(dropped, t))
	case inItsTurn && p.present.directive() == unended:
		p.directive(byPanic)
	case panicking:
		p.note(p.about(panicked, t))
	default:
		p.note(p.about(failed, t))
	}
}

func (p *probe) taskWoken(t *act.Task) {
	place := p.s.Internals().Place(t)
	k := p.rowAt(t, place).kind
	k.Woken++
	p.note(eventOf(woken, k.number, place))
	if p.woken++; p.woken%sampled == 0 && p.wake == nil {
		p.wake, p.wokenAt = t, p.clock()
	}
}

func (p *probe) turnStart(t *act.Task) {
	p.goOn()
	place := p.s.Internals().Place(t)
	r := p.rowAt(t, place)
	r.kind.Turns++
	r.last = p.millis()
	if r.fd < 0 || p.timed == sampled-1 { // to ask in each turn costs more than all else here
		r.fd = int32(p.s.Internals().Descriptor(t))
	}
	p.turn(r.kind.number, place, r.fd)
	if profiling.Load() || p.labelled != nil {
		p.label(r.kind)
	}
	if t == p.wake {
		took := p.clock() - p.wokenAt
		p.wakes.add(took)
		r.kind.Wakes.add(took)
		p.wake = nil
	}
	p.turnSince = -1 // no turn end is seen of a turn that has panicked
	if p.timed++; p.timed == sampled {
		p.timed, p.turnSince = 0, p.clock()
	}
}

func (p *probe) turnEnd(t *act.Task, d act.Directive) {
	p.directive(d)
	if p.turnSince >= 0 {
		took := p.clock() - p.turnSince
		p.turnSince = -1
		p.turns.add(took)
		p.row(t).kind.Took.add(took)
	}
}

func (p *probe) passBegin() {
	if p.labelled != nil {
		p.label(nil)
	}
	p.goOn()
	p.pass(p.s.Now() - p.start)
}

func (p *probe) idleBegin(atMost time.Duration) {
	if atMost == 0 {
		p.polls++
		return
	}
	// A pass without a turn is a part of the idle time: a thread that only polls does hardly anything else.
	if p.idleSince = p.idleUntil; p.idleUntil < 0 || p.s.Internals().TurnCount() != p.idleTurns {
		p.idleSince = p.clock()
	}
	p.asleep(max(p.idleSince, p.s.Now()) - p.start)
}

// goOn notes that Run or Step has begun, or the end of the time in the Idler, after which the scheduler has read the clock.
func (p *probe) goOn() {
	if p.isAway() {
		p.idleUntil = -1
		p.s.Internals().Tie(p)
	}
	if p.idleSince < 0 {
		return
	}
	how := facts.Asleep
	if i, ok := p.s.Internals().Idler().(facts.Resting); ok {
		how = i.Rest()
	}
	if how == facts.Polling {
		p.polls++
	} else {
		p.sleeps++
	}
	p.idleUntil, p.idleTurns = p.s.Now(), p.s.Internals().TurnCount()
	p.idle[how] += max(0, p.idleUntil-p.idleSince)
	p.note(timed(sleepEnded, p.idleUntil-p.start))
	p.idleSince = -1
}
