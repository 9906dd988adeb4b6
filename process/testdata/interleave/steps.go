// Package steps stands in the place of sync and sync/atomic where a tester chooses which thread takes the next step:
// each operation is a step, of which the tester hears before and after. Nobody else runs meanwhile, so what is behind
// the names is plain memory.
package steps

import "unsafe"

// Tester chooses.
type Tester interface {
	// Before is called before the step: others may have theirs in it.
	Before(at unsafe.Pointer)
	// After tells what was there and what is there now. A step that has not written has left what was there.
	After(at unsafe.Pointer, was, now uint64, wrote bool)
	// Looked is called after a look at a lock that another thread holds.
	Looked()
	// Await waits until another thread has written since that.
	Await()
}

// Watching hears of all steps. Without one they are just taken.
var Watching Tester

func before(at unsafe.Pointer) {
	if Watching != nil {
		Watching.Before(at)
	}
}

func after(at unsafe.Pointer, was, now uint64, wrote bool) {
	if Watching != nil {
		Watching.After(at, was, now, wrote)
	}
}

// Await is called between two looks at a lock that another thread holds.
func Await() {
	if Watching != nil {
		Watching.Await()
	}
}

func looked() {
	if Watching != nil {
		Watching.Looked()
	}
}

type number interface {
	~uint32 | ~uint64 | ~int64
}

type cell[T number] struct{ v T }

func (x *cell[T]) Load() T {
	before(unsafe.Pointer(x))
	v := x.v
	after(unsafe.Pointer(x), uint64(v), uint64(v), false)
	if v&1 != 0 {
		looked()
	}
	return v
}

// Peek is what is there. It is for the tester, and no step.
func (x *cell[T]) Peek() T { return x.v }

// change is a step that makes f of what is there.
func (x *cell[T]) change(f func(T) T) (was, now T) {
	before(unsafe.Pointer(x))
	was = x.v
	now = f(was)
	x.v = now
	after(unsafe.Pointer(x), uint64(was), uint64(now), true)
	return was, now
}

func (x *cell[T]) Store(v T) { x.change(func(T) T { return v }) }

func (x *cell[T]) Swap(v T) T {
	was, _ := x.change(func(T) T { return v })
	return was
}

func (x *cell[T]) Add(n T) T {
	_, now := x.change(func(v T) T { return v + n })
	return now
}

func (x *cell[T]) And(mask T) T {
	was, _ := x.change(func(v T) T { return v & mask })
	return was
}

func (x *cell[T]) Or(mask T) T {
	was, _ := x.change(func(v T) T { return v | mask })
	return was
}

func (x *cell[T]) CompareAndSwap(old, v T) bool {
	before(unsafe.Pointer(x))
	was := x.v
	done := was == old
	if done {
		x.v = v
	}
	after(unsafe.Pointer(x), uint64(was), uint64(x.v), done)
	return done
}

// Types of sync/atomic.
type (
	Uint32 struct{ cell[uint32] }
	Uint64 struct{ cell[uint64] }
	Int64  struct{ cell[int64] }
	Int32  struct{ cell[uint32] }
)

// Bool is that of sync/atomic.
type Bool struct{ cell cell[uint32] }

func number32(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

func (x *Bool) Load() bool       { return x.cell.Load() != 0 }
func (x *Bool) Store(v bool)     { x.cell.Store(number32(v)) }
func (x *Bool) Swap(v bool) bool { return x.cell.Swap(number32(v)) != 0 }
func (x *Bool) CompareAndSwap(old, v bool) bool {
	return x.cell.CompareAndSwap(number32(old), number32(v))
}

// Pointer is that of sync/atomic. What it has is told as a number that says nothing.
type Pointer[T any] struct{ p *T }

func (x *Pointer[T]) Load() *T {
	before(unsafe.Pointer(x))
	p := x.p
	after(unsafe.Pointer(x), 0, 0, false)
	return p
}

func (x *Pointer[T]) Store(p *T) {
	before(unsafe.Pointer(x))
	x.p = p
	after(unsafe.Pointer(x), 0, 0, true)
}

func (x *Pointer[T]) Swap(p *T) *T {
	before(unsafe.Pointer(x))
	was := x.p
	x.p = p
	after(unsafe.Pointer(x), 0, 0, true)
	return was
}

func (x *Pointer[T]) CompareAndSwap(old, p *T) bool {
	before(unsafe.Pointer(x))
	done := x.p == old
	if done {
		x.p = p
	}
	after(unsafe.Pointer(x), 0, 0, done)
	return done
}

// Mutex is that of sync.
type Mutex struct{ held Bool }

// Lock waits for others to Unlock.
func (x *Mutex) Lock() {
	for !x.held.CompareAndSwap(false, true) {
		looked()
		Await()
	}
}

// Unlock lets the next go on.
func (x *Mutex) Unlock() { x.held.Store(false) }
