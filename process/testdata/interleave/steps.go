// Package steps replaces sync and sync/atomic in the tester of interleavings, which chooses the thread that takes each
// step. An operation is a step, and the Tester is called before and after it. No other thread runs meanwhile, so the
// values are plain memory.
package steps

import "unsafe"

// Tester controls the steps.
type Tester interface {
	// Before is called before the step. Other threads may take steps in it.
	Before(at unsafe.Pointer)
	// After reports the value before and after the step, and whether the step has written.
	After(at unsafe.Pointer, was, now uint64, wrote bool)
	// Looked is called after an attempt to take a lock that another thread holds.
	Looked()
	// Await waits until another thread has written since the last Looked.
	Await()
}

// Watching is the Tester in effect; nil: none.
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

// Await is called between two attempts to take a lock that another thread holds.
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

// Peek returns the value for the tester, without a step.
func (x *cell[T]) Peek() T { return x.v }

// change is a step that replaces the value by f of it.
func (x *cell[T]) change(f func(T) T) (was, now T) {
	before(unsafe.Pointer(x))
	was = x.v
	now = f(was)
	x.v = now
	after(unsafe.Pointer(x), uint64(was), uint64(now), true)
	return was, now
}

func (x *cell[T]) Store(v T) { x.change(func(T) T { return v }) }

func (x *cell[T]) Add(n T) T {
	_, now := x.change(func(v T) T { return v + n })
	return now
}

func (x *cell[T]) And(mask T) T {
	was, _ := x.change(func(v T) T { return v & mask })
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

// These types are as in sync/atomic.
type (
	Uint32 struct{ cell[uint32] }
	Uint64 struct{ cell[uint64] }
	Int64  struct{ cell[int64] }
)

// Bool is as in sync/atomic.
type Bool struct{ cell cell[uint32] }

func number32(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

func (x *Bool) Load() bool   { return x.cell.Load() != 0 }
func (x *Bool) Store(v bool) { x.cell.Store(number32(v)) }
func (x *Bool) CompareAndSwap(old, v bool) bool {
	return x.cell.CompareAndSwap(number32(old), number32(v))
}

// Pointer is as in sync/atomic. The Tester is not told its value.
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

// Mutex is as in sync.
type Mutex struct{ held Bool }

// Lock locks x.
func (x *Mutex) Lock() {
	for !x.held.CompareAndSwap(false, true) {
		looked()
		Await()
	}
}

// Unlock unlocks x.
func (x *Mutex) Unlock() { x.held.Store(false) }
