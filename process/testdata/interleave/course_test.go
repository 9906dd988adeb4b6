package process

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// chooser says how the run goes on.
type chooser interface {
	// choose returns the index of one of fork.to.
	choose(f fork) int
	// mayPreempt reports whether a preemption would be chosen at all.
	mayPreempt() bool
	// step tells of one: by which thread, at what, and whether it has written.
	step(by, at int, wrote bool)
	// numberOf is a number for a key, the same in all runs; 0 if there is none.
	numberOf(k key) int
	// String is what repeats the run.
	String() string
}

// fork is a choice between threads, or of the world.
type fork struct {
	from       int // the thread that has come here; -1: none, or it is no choice between threads
	to         []*thread
	preemption bool // the first of to is the one that has come here, and could go on
}

// key is the name of an address.
type key struct {
	of     string
	index  int
	offset uintptr
}

// course is a chooser that tries all courses with at most so many preemptions, run by run, but for those which it need
// not try, since another one does the same in another order.
//
// That is known when a thread could be preempted by another before a step, or as well one step later, and that has been
// tried: if nothing that others did until the thread went on had anything to do with the step, it might as well have
// been taken behind that.
type course struct {
	bound int
	taken []*branch
	at    int
	spent int

	stepping *branch    // whose step is under way
	waiting  []*episode // those that are under way
	keys     map[key]int
	all      bool // also what need not be tried
	skipped  int
}

// branch is a fork, and what was tried there.
type branch struct {
	fork
	way      int
	step     reach      // of the thread, if it goes on here
	episodes []*episode // of each way
	next     *branch    // where the thread has come to after step, when that has been tried
}

// episode is what others have done from a fork on until the thread has gone on that has come there, in all runs.
type episode struct {
	of int
	reach
}

// reach is what was read and written.
type reach struct {
	read, written [4]uint64
	anything      bool
}

func (x *reach) add(at int, wrote bool) {
	switch {
	case at == 0 || at >= 256:
		x.anything = true
	case wrote:
		x.written[at/64] |= 1 << (at % 64)
	default:
		x.read[at/64] |= 1 << (at % 64)
	}
}

func (x *reach) touches(y *reach) bool {
	if x.anything || y.anything {
		return true
	}
	for i := range x.read {
		if x.written[i]&(y.read[i]|y.written[i])|x.read[i]&y.written[i] != 0 {
			return true
		}
	}
	return false
}

func newCourse(bound int) *course { return &course{bound: bound, keys: map[key]int{}} }

func (x *course) mayPreempt() bool { return x.spent < x.bound }

func (x *course) numberOf(k key) int {
	if k.of == "" {
		return 0
	}
	n, ok := x.keys[k]
	if !ok {
		n = len(x.keys) + 1
		x.keys[k] = n
	}
	return n
}

func (x *course) step(by, at int, wrote bool) {
	if b := x.stepping; b != nil && b.from == by {
		b.step.add(at, wrote)
	}
	for i := 0; i < len(x.waiting); i++ {
		if e := x.waiting[i]; e.of != by {
			e.add(at, wrote)
		} else {
			x.waiting = append(x.waiting[:i], x.waiting[i+1:]...)
			i--
		}
	}
}

func (x *course) choose(f fork) int {
	if x.at == len(x.taken) {
		x.taken = append(x.taken, &branch{fork: f, episodes: make([]*episode, len(f.to))})
	}
	b := x.taken[x.at]
	if len(b.to) != len(f.to) || b.preemption != f.preemption || b.from != f.from {
		panic(fmt.Sprintf("the same choices have led elsewhere: %d ways at choice %d, which had %d", len(f.to), x.at, len(b.to)))
	}
	b.to = f.to
	x.at++
	x.stepping = nil
	switch {
	case b.preemption && b.way == 0:
		x.stepping = b
	case b.from >= 0:
		if b.episodes[b.way] == nil {
			b.episodes[b.way] = &episode{of: b.from}
		}
		x.waiting = append(x.waiting, b.episodes[b.way])
	}
	if b.preemption && b.way > 0 {
		x.spent++
	}
	return b.way
}

// rewind goes back to the beginning.
func (x *course) rewind() { x.at, x.spent, x.stepping, x.waiting = 0, 0, nil, nil }

// again goes back to the last fork with a way that has to be tried, and reports false if there is none.
func (x *course) again() bool {
	x.rewind()
	for n := len(x.taken) - 1; n >= 0; n-- {
		b := x.taken[n]
		for b.way+1 < len(b.to) {
			if b.way++; x.all || !b.needless() {
				x.taken = x.taken[:n+1]
				return true
			}
			x.skipped++
		}
		if n == 0 {
			break
		}
		if before := x.taken[n-1]; before.preemption && before.way == 0 && before.from == b.from {
			before.next = b
		}
	}
	return false
}

// needless reports whether the isSetUp way does the same as another that was tried.
func (b *branch) needless() bool {
	if b.next == nil {
		return false
	}
	for i, t := range b.next.to {
		if e := b.next.episodes[i]; t.number == b.to[b.way].number && e != nil && !e.touches(&b.step) {
			b.episodes[b.way] = e
			return true
		}
	}
	return false
}

func (x *course) String() string {
	var s []string
	for i, b := range x.taken {
		if b.way > 0 {
			s = append(s, fmt.Sprintf("%d:%d", i, b.way))
		}
	}
	return strings.Join(s, ",")
}

// replay is a chooser that takes one course: that of which String of a course has told.
type replay struct {
	*course
	ways map[int]int
}

func newReplay(s string, bound int) (*replay, error) {
	x := &replay{newCourse(bound), map[int]int{}}
	for _, pair := range strings.Split(s, ",") {
		at, way, _ := strings.Cut(pair, ":")
		if at == "" {
			continue
		}
		i, err := strconv.Atoi(at)
		if err != nil {
			return nil, err
		}
		if x.ways[i], err = strconv.Atoi(way); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *replay) choose(f fork) int {
	if x.at == len(x.taken) {
		x.taken = append(x.taken, &branch{fork: f, way: min(x.ways[x.at], len(f.to)-1), episodes: make([]*episode, len(f.to))})
	}
	return x.course.choose(f)
}

// dice is a chooser that follows a seed.
type dice struct {
	seed uint64
	*rand.Rand
	often float64 // how likely a preemption is
}

func newDice(seed uint64) *dice {
	x := &dice{seed: seed, Rand: rand.New(rand.NewPCG(seed, 7))}
	x.often = []float64{0.5, 0.2, 0.05, 0.02}[x.IntN(4)]
	return x
}

func (x *dice) mayPreempt() bool { return x.Float64() < x.often }

func (x *dice) choose(f fork) int {
	if f.preemption {
		return 1 + x.IntN(len(f.to)-1)
	}
	return x.IntN(len(f.to))
}

func (x *dice) step(int, int, bool) {}
func (x *dice) numberOf(key) int    { return 0 }
func (x *dice) String() string      { return strconv.FormatUint(x.seed, 10) }
