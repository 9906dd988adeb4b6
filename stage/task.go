package stage

import (
	"fmt"
	"time"
)

// ID is the number of a task: above 0, and never given twice by a store.
type ID int64

// Status says what is being done about a task, in addition to the stage that it has reached.
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

// The statuses. Their texts are what the stores keep.
const (
	Normal       Status = "NORMAL"        // new, between two workers, or finished
	InProcessing Status = "IN_PROCESSING" // a worker holds it, under a lease
	Suspended    Status = "SUSPENDED"     // at its last static stage, until it is resumed
	Resumed      Status = "RESUMED"       // to be claimed again
	Error        Status = "ERROR"         // a stage has failed; see Task.Due
	Cancelled    Status = "CANCELLED"     // at its last static stage, for good
)

// Wanted is a request to the worker that holds a task.
type Wanted string

// The requests. Their texts are what the stores keep.
const (
	Nothing    Wanted = ""
	Suspension Wanted = "SUSPEND"
	Ending     Wanted = "CANCEL"
)

// Task is a snapshot of what a store knows of a task. It is a record, not a task of a scheduler, which is an act.Task.
type Task struct {
	ID     ID
	Kind   string // names its chain
	Stage  string // the dynamic one while it is being worked on, else the last static one
	Status Status
	Wanted Wanted // Nothing unless the Status is InProcessing

	// Data is what the task was enqueued with, or what its latest finished stage has left (see Tx.SetData); nil if that
	// is empty. Caller and store never share the bytes.
	Data []byte

	// Attempt counts the failures of the present stage: errors, and workers that were lost. Failure is the text of the
	// latest error, and of a panic also the stack, after an empty line. It is cut to MaxFailure bytes. A stage that
	// finishes clears both. Engine.Failures has those of earlier attempts.
	Attempt int
	Failure string

	// Progress is what the processor of the stage ProgressStage has noted with SetProgress, in this try or an earlier one.
	// Both are empty if none has, and when a stage finishes. A processor gets the Progress of its own stage, or nil.
	Progress      []byte
	ProgressStage string

	// Due is when the task may be claimed, by the store's clock. For a task in processing that is the end of its lease.
	// The zero Time means never: the task is finished, suspended, cancelled, or has failed for good.
	Due time.Time

	// Worker holds the task, or was the last to. Token, the fencing token, rises with each claim.
	Worker string
	Token  int64

	Created time.Time
	Changed time.Time // the last transition; heartbeats do not count

	notes *notes // of the processor that was given this Task
}

// MaxFailure bounds Task.Failure, in bytes.
const MaxFailure = 4096

// MaxProgress bounds Task.Progress, in bytes.
const MaxProgress = 4096

// String names the task for a log.
func (t *Task) String() string { return fmt.Sprintf("%s %d", t.Kind, t.ID) }

// Runs reports whether the task is being worked on or is going to be. If it is finished, suspended or cancelled, or has failed
// for good, it is not.
func (t *Task) Runs() bool { return !t.Due.IsZero() }

// SetProgress notes how far the processor that was given t has come, and replaces what it has noted before. The next try
// of the stage gets a copy of data as Task.Progress, unless the stage finishes. After a crash it does if a heartbeat has stored
// data by then. A stage that fails, is suspended or is interrupted stores it when the task goes back. No data, not
// even nil, is progress too: the next try begins anew.
//
// A processor may call SetProgress often, from any of its goroutines: that costs a copy, and each heartbeat stores no more
// than the latest. When Process has returned, it does nothing. It panics if there are more than MaxProgress bytes, and if t
// is not what a processor was given.
func (t *Task) SetProgress(data []byte) {
	if t.notes == nil {
		panic("stage: SetProgress is for the Task that a processor was given")
	}
	if len(data) > MaxProgress {
		panic(fmt.Sprintf("stage: SetProgress with %d bytes; MaxProgress is %d", len(data), MaxProgress))
	}
	t.notes.set(data)
}

// Finished reports whether the task has reached the last stage of its chain.
func (t *Task) Finished() bool { return t.Status == Normal && !t.Runs() }

// Ended reports whether the task has come to an end: it is finished or cancelled, or has failed for good.
func (t *Task) Ended() bool { return !t.Runs() && t.Status != Suspended }

// Lease returns the lease of the present holder.
func (t *Task) Lease() Lease { return Lease{t.ID, t.Token} }

// Lease is the right to change a task. It begins with a claim, and ends by the clock of the store unless heartbeats renew
// it, or when the holder gives the task back. Its fencing token keeps earlier holders from changing anything.
type Lease struct {
	Task  ID
	Token int64
}
