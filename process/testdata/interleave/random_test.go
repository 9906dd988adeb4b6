package process

import (
	"fmt"
	"math/rand/v2"
)

// The random worlds are bigger than the small cases: one to three runners, processes with mailboxes of all kinds, which
// send, spawn, end and kill, and goroutines and tasks that do the same. One seed makes one history.
//
// A process sends to one that is younger, or whose mailbox has nobody wait, so that no ring of them waits for room.

// Bounds of a random world.
const (
	mostProcs = 5 // at first
	mostFuel  = 4 // how many messages one may bring on, one after another
	mostDone  = 4 // by a goroutine, or a task
)

// onPurpose is what a process panics with.
const onPurpose = "on purpose"

// theatre has what worlds of one to three runners need.
type theatre [3]stations

func newTheatre() theatre { return theatre{newStations(1), newStations(2), newStations(3)} }

// tryRandom is one random world.
func tryRandom(seed uint64, all theatre, telling bool) *world {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := newWorld(newDice(seed), all[rng.IntN(3)], Config{Messages: 1 + rng.IntN(3), Batch: 1 + rng.IntN(5)})
	w.bells, w.telling = rng.IntN(4) == 0, telling
	for range 1 + rng.IntN(mostProcs) {
		w.random(w.sys, rng)
	}
	if rng.IntN(2) == 0 && !w.rest(false) {
		w.end()
		return w
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("goroutine %d", i)
		w.thread(name, func() {
			for range 1 + w.pick(mostDone) {
				w.anything(w.sys, name, nil, w.pick(mostFuel))
			}
		})
	}
	for i := range rng.IntN(3) {
		name := fmt.Sprintf("task %d", i)
		w.task(rng.IntN(len(w.stations)), func(from Sender) {
			for range 1 + w.pick(mostDone) {
				w.anything(from, name, nil, w.pick(mostFuel))
			}
		})
	}
	w.rest(true)
	w.end()
	return w
}

// random makes a process with options of all kinds.
func (w *world) random(from Sender, rng interface{ IntN(int) int }) {
	name := fmt.Sprintf("p%d", w.named)
	w.named++
	o := Options{Limit: []int{Unbounded, 1, 2}[rng.IntN(3)], Overflow: Overflow(rng.IntN(3))}
	x := &proc{w: w, name: name, heard: map[string]int{}, numbers: map[string]int{}}
	x.lazy = rng.IntN(4) == 0
	x.bounded = o.Limit != Unbounded && o.Overflow == Block
	fuel := rng.IntN(mostFuel)
	x.first = func(p *Self[msg]) { w.anything(p, name, x, fuel) }
	x.ref = Spawn(from, x, o)
	w.discover()
	w.known = append(w.known, x)
}

// picks are the choices of a world, as random numbers.
type picks struct{ *world }

func (x picks) IntN(n int) int { return x.pick(n) }

// anything is done by a goroutine, a task, or a process in its turn.
func (w *world) anything(from Sender, name string, me *proc, fuel int) {
	to := w.known[w.pick(len(w.known))]
	defer w.returned()
	switch w.pick(12) {
	default:
		if fuel > 0 {
			w.sendAnything(from, name, me, to, fuel-1)
		}
	case 5:
		if fuel > 0 && w.named < 3*mostProcs {
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
		w.sys.runners[w.pick(len(w.stations))].wake()
	case 11:
		other := w.known[w.pick(len(w.known))]
		Link(to.ref, other.ref, w.pick(2) == 1)
	}
}

func (w *world) sendAnything(from Sender, name string, me, to *proc, fuel int) {
	if me != nil && to.bounded && to != me && to.core.id <= me.core.id {
		return
	}
	do := func(p *Self[msg]) {
		for range w.pick(3) {
			w.anything(p, to.name, to, fuel)
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
