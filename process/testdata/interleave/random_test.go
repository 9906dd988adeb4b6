package process

import (
	"fmt"
	"math/rand/v2"
)

// Random worlds are larger than the cases. They have one to three runners, processes with all kinds of mailboxes that
// send, spawn, end and kill, and goroutines and tasks that do the same. One seed has one history.
//
// A process sends only to younger processes, or to mailboxes that never block, so that no cycle of processes waits for
// room.

// Bounds of a random world.
const (
	mostProcs = 5 // initially
	mostDepth = 4 // the longest chain of messages that cause others
	mostDone  = 4 // actions of a goroutine or a task
)

// onPurpose is the value of deliberate panics.
const onPurpose = "on purpose"

// loopSets are the loops for one to three runners.
type loopSets [3]loops

func newLoopSets() loopSets { return loopSets{newLoops(1), newLoops(2), newLoops(3)} }

// tryRandom runs one random world.
func tryRandom(seed uint64, all loopSets, recording bool) *world {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := newWorld(newRandomChooser(seed), all[rng.IntN(3)], 1+rng.IntN(3), 1+rng.IntN(5))
	w.bells, w.recording = rng.IntN(4) == 0, recording
	for range 1 + rng.IntN(mostProcs) {
		w.random(w.sys, rng)
	}
	if rng.IntN(2) == 0 && !w.runUntilIdle(false) {
		w.end()
		return w
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("goroutine %d", i)
		w.thread(name, func() {
			for range 1 + w.pick(mostDone) {
				w.anything(w.sys, name, nil, w.pick(mostDepth))
			}
		})
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("task %d", i)
		w.task(rng.IntN(len(w.loops)), func(from Sender) {
			for range 1 + w.pick(mostDone) {
				w.anything(from, name, nil, w.pick(mostDepth))
			}
		})
	}
	w.runUntilIdle(true)
	w.end()
	return w
}

// random spawns a process with random options.
func (w *world) random(from Sender, rng interface{ IntN(int) int }) {
	name := fmt.Sprintf("p%d", w.named)
	w.named++
	o := Options{Limit: []int{-1, 1, 2}[rng.IntN(3)], Reject: rng.IntN(2) == 0}
	x := &proc{w: w, name: name, heard: map[string]int{}, numbers: map[string]int{}}
	x.lazy = rng.IntN(4) == 0
	x.bounded = o.Limit != -1 && !o.Reject
	depth := rng.IntN(mostDepth)
	x.first = func(p *Self[msg]) { w.anything(p, name, x, depth) }
	x.ref = Spawn(from, x, o)
	w.trackNew()
	w.known = append(w.known, x)
}

// picks are the choices of a world, as random numbers.
type picks struct{ *world }

func (x picks) IntN(n int) int { return x.pick(n) }

// anything does one random thing for a goroutine, a task, or a process in its turn.
func (w *world) anything(from Sender, name string, me *proc, depth int) {
	to := w.known[w.pick(len(w.known))]
	defer w.returned()
	switch w.pick(12) {
	default:
		if depth > 0 {
			w.sendAnything(from, name, me, to, depth-1)
		}
	case 5:
		if depth > 0 && w.named < 3*mostProcs {
			w.random(from, picks{w})
		}
	case 6:
		if w.pick(2) == 0 {
			to.ref.Kill()
		}
	case 7:
		to.ref.p.Poke()
	case 8:
		if p, ok := from.(*Self[msg]); ok {
			switch w.pick(4) {
			case 0:
				p.Exit()
			case 1:
				panic(onPurpose)
			}
		}
	case 9:
		if me == nil && from == Sender(w.sys) {
			w.ask()
		}
	case 10:
		w.sys.runners[w.pick(len(w.loops))].wake()
	case 11:
		other := w.known[w.pick(len(w.known))]
		Link(to.ref, other.ref, w.pick(2) == 1)
	}
}

func (w *world) sendAnything(from Sender, name string, me, to *proc, depth int) {
	if me != nil && to.bounded && to != me && to.core.id <= me.core.id {
		return
	}
	do := func(p *Self[msg]) {
		for range w.pick(3) {
			w.anything(p, to.name, to, depth)
		}
	}
	b, ok := w.send(from, name, to, do).(*blockedSend)
	if ok && from == Sender(w.sys) {
		var heard signal
		if b.join(&heard) != nil {
			w.await("room", func() bool { return heard > 0 })
		}
	}
}
