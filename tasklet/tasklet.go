package tasklet

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/daimon-go/daimon/act"
)

// Tasklet is work in phases. Task runs one phase and returns where the next one runs. The argument is the runner as
// this tasklet sees it: the same in all its phases, not to be passed to other tasklets. Make one of a function with
// [New].
//
// Tasklets are compared with ==, so a Tasklet is best a pointer to a struct that is not empty (Go may give all empty
// structs one address). A tasklet that cannot be compared, or is not equal to itself, causes a panic.
//
// If a Tasklet is a fmt.Stringer, String gives its name in logs, traces and Cuts. String is called on the thread in
// Run, even while an ASYNC phase runs. It may panic.
//
// A Tasklet that is an [act.Stopper] is told of a shutdown: Stop is called on the thread in Run, between two phases, once
// for each request that makes the policy stricter. A tasklet in an ASYNC phase is told after that phase, of the latest
// request only, and not at all if Run has ended. Stop must not block. It may schedule and resume tasklets, as a phase
// may. Other Tasklets go on unchanged.
type Tasklet interface {
	// Task runs one phase, and returns where the next one runs. It may block in an ASYNC phase only.
	Task(r *Runner) Directive
}

// Directive says where the next phase of a tasklet runs: it is the result of [Tasklet].Task. (Package act has another type
// with this name.)
type Directive uint8

// The zero Directive is invalid and causes a panic.
const (
	_     Directive = iota
	Sync            // SYNC: the next phase runs on the thread in Run, where it must not block
	Async           // ASYNC: the next phase runs on another goroutine, in parallel, and may block
	Wait            // WAIT: there is no next phase until the tasklet is resumed
	Done            // DONE: there is no further phase; the tasklet is forgotten
)

// String returns the name of d in upper case, such as "SYNC".
func (d Directive) String() string {
	if !d.valid() {
		return fmt.Sprintf("Directive(%d)", uint8(d))
	}
	return [...]string{Sync: "SYNC", Async: "ASYNC", Wait: "WAIT", Done: "DONE"}[d]
}

func (d Directive) valid() bool { return Sync <= d && d <= Done }

// require panics if d is invalid.
func (d Directive) require() {
	if !d.valid() {
		panic("tasklet: " + d.String() + " is not a directive: use Sync, Async, Wait or Done")
	}
}

// New returns a [Tasklet] whose phases are calls of f, one after the other. Logs name it after f. Any goroutine.
func New(f func(r *Runner) Directive) Tasklet { return &function{f} }

type function struct {
	f func(r *Runner) Directive
}

func (f *function) Task(r *Runner) Directive { return f.f(r) }

func (f *function) String() string { return act.Name(f.f) }

var (
	// ErrNotRunning is returned by [Runner.Schedule] for Async outside of Run and under [Inline]. After the act.Scheduler of
	// [RunnerOf] is closed, it is returned for every Directive.
	ErrNotRunning = errors.New("tasklet: the runner is not running")
	// ErrInPhase is returned by [With] for a tasklet that is in a phase already, of this runner or another one.
	ErrInPhase = errors.New("tasklet: the tasklet is in a phase already")
	// errSynchronous is for an executor that tries to run an ASYNC phase on the thread in Run.
	errSynchronous = errors.New("tasklet: the executor runs ASYNC phases on the thread in Run")
)

// requireComparable panics if t cannot be a member.
func requireComparable(t Tasklet) {
	if t == nil {
		panic("tasklet: no tasklet")
	}
	same := t
	if v := reflect.ValueOf(t); v.Kind() != reflect.Pointer && (!v.Comparable() || t != same) { // Comparable allocates
		panic(fmt.Sprintf("tasklet: %T cannot be compared with ==: use a pointer", t)) // or there is a NaN in it
	}
}
