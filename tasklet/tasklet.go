package tasklet

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Tasklet is work in phases. Task takes one phase: it does its part and says with its Directive where the
// next phase is to run, if there is one. s is the scheduler that the phase runs under, as this tasklet sees
// it: the same in all phases of a life, not to be handed to others.
//
// Tasklets are told apart by ==, so one is best a pointer, to a struct that is not empty: Go may give all
// empty ones the same address. One that cannot be compared, not even with itself, is refused with
// ErrIncomparable.
//
// A Tasklet that is a fmt.Stringer is called so in logs, traces and Cuts. Its String is called on the
// thread in Run, also while an ASYNC phase runs. One that panics is survived.
type Tasklet interface {
	Task(s *Scheduler) Directive
}

// Stopper is a Tasklet that wants to be told of orders. Stop is called on the thread in Run, never beside
// a phase: between two of them, once for each order that makes the terms stricter. Who is in an ASYNC
// phase is told after it, of the latest, and before the next; if Run has ended meanwhile, not at all. Stop must
// not block; what it resumes and schedules counts as in a phase. One that is no Stopper goes on as if nothing had
// been said, and can look at Scheduler.Order.
type Stopper interface {
	Stop(s *Scheduler, o shutdown.Order)
}

// Directive is where the next phase of a tasklet is to run.
type Directive uint8

// The zero Directive is a bug of whoever gave it: a panic says so.
const (
	_     Directive = iota
	Sync            // SYNC: on the thread in Run, in its turn
	Async           // ASYNC: on the executor, beside everything else
	Wait            // WAIT: nowhere, until it is resumed
	Done            // DONE: there is none; the tasklet is forgotten
)

func (d Directive) String() string {
	switch d {
	case Sync:
		return "SYNC"
	case Async:
		return "ASYNC"
	case Wait:
		return "WAIT"
	case Done:
		return "DONE"
	}
	return fmt.Sprintf("Directive(%d)", uint8(d))
}

func (d Directive) valid() bool { return Sync <= d && d <= Done }

// require panics if d is none.
func (d Directive) require() {
	if !d.valid() {
		panic("tasklet: " + d.String() + " is no directive: give Sync, Async, Wait or Done")
	}
}

// New returns a tasklet whose phases are calls of f: functions cannot be compared, pointers to them can.
// It is called after f in logs.
func New(f func(s *Scheduler) Directive) Tasklet { return &function{f} }

type function struct {
	f func(s *Scheduler) Directive
}

func (f *function) Task(s *Scheduler) Directive { return f.f(s) }

func (f *function) String() string { return act.FuncName(f.f) }

// NewDone returns a tasklet whose phase answers Done: scheduled, it is a place in the queue and nothing
// else. Each is a tasklet of its own.
func NewDone() Tasklet { return &answer{Done} }

// NewWait returns a tasklet whose phase answers Wait: suspended, it keeps Run from returning until it is
// resumed with Done. Each is a tasklet of its own.
func NewWait() Tasklet { return &answer{Wait} }

type answer struct{ d Directive }

func (a *answer) Task(*Scheduler) Directive { return a.d }

func (a *answer) String() string { return "tasklet of " + a.d.String() }

var (
	// ErrNotRunning is returned for an ASYNC that has nowhere to run: outside of Run, and always under
	// Inline. After the Close of a scheduler given to On it is returned for everything.
	ErrNotRunning = errors.New("tasklet: the scheduler is not running")
	// ErrInPhase is returned by With for a tasklet that is in a phase, under whichever scheduler.
	ErrInPhase = errors.New("tasklet: it is in a phase already")
	// ErrNested is returned by a Run inside a phase of the same scheduler.
	ErrNested = errors.New("tasklet: Run was called inside a phase")
	// ErrNoRun is returned by the Run of a scheduler that has none, made by Inline or On.
	ErrNoRun = errors.New("tasklet: a scheduler made by Inline or On has no Run of its own")
	// ErrSynchronous is returned for an ASYNC phase that the executor was about to run on the thread in Run.
	ErrSynchronous = errors.New("tasklet: the executor runs on the synchronous thread")
	// ErrIncomparable is returned for a tasklet that cannot be told from others, or is not equal to itself.
	ErrIncomparable = errors.New("tasklet: it cannot be compared with ==: use a pointer")
)

// identify returns why t cannot be a member.
func identify(t Tasklet) error {
	if t == nil {
		panic("tasklet: no tasklet")
	}
	same := t
	if v := reflect.ValueOf(t); v.Kind() != reflect.Pointer && (!v.Comparable() || t != same) { // Comparable allocates
		return fmt.Errorf("%w: %T", ErrIncomparable, t) // not the same: there is a NaN in it
	}
	return nil
}
