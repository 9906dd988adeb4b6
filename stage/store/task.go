package store

import (
	"fmt"
	"strings"
	"time"
)

// ID is the number of a task: above 0, and never given twice by a store. Enqueue returns it.
type ID int64

// Status is the state of a task, in addition to the stage that it has reached.
//
//	                 claimed                     last stage
//	NORMAL, RESUMED ────────▶ IN_PROCESSING ─────────────────▶ NORMAL, for good
//	  ▲  ▲                     │   │   │   │
//	  │  └── interrupted ──────┘   │   │   └── Cancel ────────▶ CANCELLED, for good
//	  │                            │   └────── a failure ─────▶ ERROR, until it is due again or resumed
//	  └───────── Resume ───────────┴────────── Suspend ───────▶ SUSPENDED
//
// Suspend and Cancel act at once on a task that no worker holds.
type Status string

// The statuses. Stores keep these texts.
const (
	Normal       Status = "NORMAL"        // not held by a worker: new, given back, or finished (see Task.Finished)
	InProcessing Status = "IN_PROCESSING" // a worker holds the task, under a lease
	Suspended    Status = "SUSPENDED"     // nobody works on the task until it is resumed
	Resumed      Status = "RESUMED"       // resumed after a suspension, and not claimed yet
	Failed       Status = "ERROR"         // a stage has failed: it is tried again at Task.Due, or never if that is zero
	Canceled     Status = "CANCELLED"     // cancelled, which is final
)

// Task is a snapshot of a task in a store. It is a record, not a task of a scheduler, which is an act.Task.
type Task struct {
	ID     ID     // the number that Enqueue has returned
	Kind   string // the kind of the task, which determines its chain of stages
	Stage  string // the dynamic stage that a worker is at, otherwise the latest static stage that the task has reached
	Status Status // whether the task is held, waits, is suspended, has failed or is cancelled
	Wanted Status // what its worker is asked for: Suspended, Canceled, or "" for nothing

	// Data is the data of the enqueued task, or the data that its latest finished stage has set (see Tx.SetData); nil
	// if that is empty. Caller and store never share the bytes.
	Data []byte

	// Attempt counts the failures of the present stage: errors, and workers that were lost. Failure is the text of the
	// latest error, and of a panic also the stack, after an empty line. It is truncated to 4096 bytes. A stage that
	// finishes clears both. Store.Failures returns the texts of earlier attempts.
	Attempt int
	Failure string

	// Progress is the data that the processor of the stage ProgressStage has noted with stage.SetProgress, in this try
	// or an earlier one. Both are empty if none has, and when a stage finishes. A processor gets the Progress of its
	// own stage, or nil.
	Progress      []byte
	ProgressStage string

	// Due is when the task may be claimed, by the store's clock. For a task in processing that is the end of its lease.
	// The zero Time means never: the task is finished, suspended, cancelled, or has failed for good.
	Due time.Time

	// Worker is the name (stage.Config.Worker) of the worker that holds the task or was the last to hold it. Token is
	// the fencing token: it rises with each claim.
	Worker string
	Token  int64

	Created time.Time // when the task was enqueued, by the store's clock
	Changed time.Time // the latest transition of the task, by the same clock; heartbeats do not count
}

// String returns the kind and the number of the task, for logs.
func (t *Task) String() string { return fmt.Sprintf("%s %d", t.Kind, t.ID) }

// Runs reports whether the task is being worked on or is going to be. If it is finished, suspended or cancelled, or has failed
// for good, it is not.
func (t *Task) Runs() bool { return !t.Due.IsZero() }

// Finished reports whether the task has reached the last stage of its chain, which is success.
func (t *Task) Finished() bool { return t.Status == Normal && !t.Runs() }

// Ended reports whether the task has come to an end: it is finished or cancelled, or has failed for good. Err says which.
func (t *Task) Ended() bool { return !t.Runs() && t.Status != Suspended }

// Err returns nil if the task has finished, or has not ended. Otherwise it returns why it has not finished: ErrCanceled, or an
// error that wraps ErrFailed and has the first line of Failure.
func (t *Task) Err() error {
	switch {
	case t.Status == Canceled:
		return ErrCanceled
	case t.Status == Failed && t.Ended():
		line, _, _ := strings.Cut(t.Failure, "\n")
		return fmt.Errorf("%w: %s", ErrFailed, line)
	}
	return nil
}

// Lease returns the lease under which the task was held when t was read, for the methods of a Store that take one.
func (t *Task) Lease() Lease { return Lease{t.ID, t.Token} }

// Lease is the right to change a task. It begins with a claim, and ends by the clock of the store unless heartbeats renew
// it, or when the holder gives the task back. Its fencing token keeps earlier holders from changing anything.
type Lease struct {
	Task  ID    // the task that the lease is for
	Token int64 // the fencing token, Task.Token of the claim
}
