package act

import (
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
)

// census counts what a shutdown waits for on a scheduler, and chooses the few tasks that are described. It is taken in
// steps, so that the scheduler serves in between.
type census struct {
	s       *Scheduler
	drain   bool // of a shutdown that goes on: without the tasks that end last of all
	cut     shutdown.Cut
	before  []candidate // of the previous census
	oldest  []candidate
	chunk   int // of the slab, next
	place   int // of the lists below, next
	closing []facts.Lingerer
}

// candidate is one of the oldest so far. It is described at the end of its step, since describing takes longer than
// counting.
type candidate struct {
	shutdown.Unfinished
	closing any // a connection without a task; nil: t
	t       *Task
	turn    uint64        // of t: if the number is another one later, t has had a turn, or is another task
	seen    time.Duration // when t was first known to have had this turn
}

func candidateKey(x *candidate) (kind string, still time.Duration) { return x.Kind, x.Still }

// chunksAStep bounds a step: 8 chunks are 504 tasks.
const chunksAStep = 8

// slotsAStep bounds the places of connections that a step visits.
const slotsAStep = 4096

func newCensus(s *Scheduler, drain bool, before []candidate) *census {
	c := &census{s: s, drain: drain, before: before}
	for _, v := range s.made {
		if l, ok := v.(facts.Lingerer); ok {
			c.closing = append(c.closing, l)
		}
	}
	return c
}

// step continues the census, and reports whether there may be more.
func (c *census) step() (more bool) {
	more = c.visitSome()
	for i := range c.oldest {
		if x := &c.oldest[i]; x.State == "" {
			x.describe(c.s)
		}
	}
	return more
}

// visitSome counts the next tasks, or the next closed connections.
func (c *census) visitSome() (more bool) {
	if chunks := c.s.slab.chunks; c.chunk < len(chunks) {
		for range min(chunksAStep, len(chunks)-c.chunk) {
			for i := range chunks[c.chunk] {
				c.visit(&chunks[c.chunk][i])
			}
			c.chunk++
		}
		return true
	}
	if len(c.closing) == 0 {
		return false
	}
	c.place = c.closing[0].EachClosing(c.place, slotsAStep, func(still time.Duration, x any) {
		c.keep(candidate{Unfinished: shutdown.Unfinished{Kind: "closed connections", Still: still}, closing: x})
	})
	if c.place == 0 {
		c.closing = c.closing[1:]
	}
	return true
}

func (c *census) visit(t *Task) {
	if t.state > free && t.state < abandoned && t.flags&background == 0 && (!c.drain || t.flags&last == 0 || c.s.lastTold) {
		c.count(t)
	}
}

// count counts t, and keeps it if it is one of the oldest.
func (c *census) count(t *Task) {
	kind := c.s.Internals().Kind(t)
	one := shutdown.Cut{Kinds: []shutdown.Count{{Name: kind, N: 1}}}
	if t.flags&isDemon != 0 {
		one.Demons++
	} else {
		one.Tasks++
	}
	if t.state == offloaded {
		one.Offloads++
	}
	if !c.drain { // making a name takes longer than all the rest
		one.Names = []shutdown.Count{{Name: t.String(), N: 1}}
	}
	merge.Add(&c.cut, &one)
	if c.s.waitsFor(t) {
		c.keep(c.candidate(t, kind))
	}
}

// waitsFor reports whether a shutdown waits for t. A demon that has not been told yet mostly ends when it is told, and
// the tasks that end last of all wait for the others.
func (s *Scheduler) waitsFor(t *Task) bool {
	switch {
	case t.flags&last != 0 && !s.lastTold:
		return false
	case t.flags&isDemon != 0:
		return s.order != nil && (t.flags&untold == 0 || t.state == offloaded)
	}
	return true
}

func (c *census) candidate(t *Task, kind string) candidate {
	x := candidate{Unfinished: shutdown.Unfinished{Kind: kind, Still: -1}, t: t, turn: t.turn, seen: c.s.now}
	if t.state == offloaded {
		x.Still = c.s.now - t.extra.offload.since
	} else if k, ok := t.action.(facts.Connected); ok {
		x.Still = k.Still()
	}
	if x.Still < 0 {
		if i := slices.IndexFunc(c.before, func(b candidate) bool { return b.t == t && b.turn == t.turn }); i >= 0 {
			x.seen = c.before[i].seen
			x.Still = c.s.now - x.seen
		}
	}
	return x
}

func (c *census) keep(x candidate) { c.oldest = merge.Oldest(c.oldest, x, candidateKey) }

// result returns what is left, with the oldest described; nil if nothing is left.
func (c *census) result() *shutdown.Cut {
	for i := range c.oldest {
		merge.Add(&c.cut, &shutdown.Cut{Left: []shutdown.Unfinished{c.oldest[i].Unfinished}})
	}
	merge.Add(&c.cut, c.s.heldFor())
	if c.cut.Tasks+c.cut.Demons+c.cut.Lingering+c.cut.Processes == 0 {
		return nil
	}
	return &c.cut
}

// describe is called in the step that has found x.
func (x *candidate) describe(s *Scheduler) {
	if x.closing != nil {
		d := describe(x.closing)
		x.State, x.Name = "closing", d.Name
		x.Peer, x.Waits = d.said.Peer.String(), d.Internals().Waits.All()
		return
	}
	if x.State = stateNames[x.t.state]; x.t.state == offloaded { // the action belongs to its function
		x.Name = x.Kind
		x.Waits = []string{"a function that runs elsewhere"}
		return
	}
	d := describe(x.t.action)
	x.Name, x.Peer = x.t.String(), d.said.Peer.String()
	if x.t.state == waiting {
		x.Waits = d.Internals().Waits.All()
		if is := s.Internals().Status(x.t); is.Timers > 0 {
			x.Waits = append(x.Waits, fmt.Sprintf("a timer due in %v", is.Due.Round(time.Millisecond)))
		}
	}
}

// whole returns a census that is taken at once.
func (s *Scheduler) whole(drain bool) *census {
	var before []candidate
	if s.draining != nil {
		before = s.draining.before
	}
	c := newCensus(s, drain, before)
	if s.cut != nil && !drain {
		c.cut = *s.cut
	}
	for c.step() {
	}
	return c
}

// left returns what is left at the end, with what was dropped on the way; nil if nothing.
func (s *Scheduler) left() *shutdown.Cut {
	c := s.whole(false)
	if s.halted != nil {
		c.oldest = s.halted.oldest
	}
	cut := c.result()
	if cut != nil {
		cut.Order, cut.Dropped = s.order, s.terms.drop
	}
	return cut
}

// heldFor returns what KeepRunning was called for: lingering closes, unless an Accounter knows better.
func (s *Scheduler) heldFor() *shutdown.Cut {
	c := &shutdown.Cut{Order: s.order, Lingering: s.held}
	if s.held == 0 {
		return c
	}
	for _, v := range slices.Backward(s.made) {
		if a, ok := v.(facts.Accounter); ok {
			c.Lingering -= a.Account(c)
		}
	}
	return c
}

// noteCut notes a task that is dropped on the way.
func (s *Scheduler) noteCut(t *Task) {
	if s.cut == nil {
		s.cut = &shutdown.Cut{}
	}
	c := census{s: s}
	c.count(t)
	merge.Add(s.cut, &c.cut)
	if len(s.cut.Left) == merge.Most { // there may be very many, and asking for a peer is a system call
		return
	}
	c.oldest[0].describe(s)
	merge.Add(s.cut, &shutdown.Cut{Left: []shutdown.Unfinished{c.oldest[0].Unfinished}})
}
