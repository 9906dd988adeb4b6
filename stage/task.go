package stage

import (
	"fmt"
	"time"
)

// ID is a task's number, given by its store: above 0, never given twice.
type ID int64

// Status is what is being done about a task, beside the stage that it has reached.
//
//	                 claimed                     last stage
//	NORMAL, RESUMED ────────▶ IN_PROCESSING ─────────────────▶ NORMAL, for good
//	  ▲  ▲                     │   │   │   │
//	  │  └── interrupted ──────┘   │   │   └── Cancel ────────▶ CANCELLED, for good
//	  │                            │   └────── a failure ─────▶ ERROR, until it is due again or resumed
//	  └───────── Resume ───────────┴────────── Suspend ───────▶ SUSPENDED
//
// Suspend and Cancel act at once on a task that nobody works on.
type Status string

// The statuses. Their texts are what the stores keep.
const (
	Normal       Status = "NORMAL"        // new, between two workers, or finished
	InProcessing Status = "IN_PROCESSING" // a worker has it, under a lease
	Suspended    Status = "SUSPENDED"     // at its last static stage, until it is resumed
	Resumed      Status = "RESUMED"       // to be claimed again
	Error        Status = "ERROR"         // a stage has failed; see Task.Due
	Cancelled    Status = "CANCELLED"     // at its last static stage, for good
)

// Wanted is what somebody has asked for while a worker has the task.
type Wanted string

// The requests. Their texts are what the stores keep.
const (
	Nothing    Wanted = ""
	Suspension Wanted = "SUSPEND"
	Ending     Wanted = "CANCEL"
)

// Task is what a store knows of a task: a snapshot.
type Task struct {
	ID     ID
	Kind   string // which chain it goes along
	Stage  string // the dynamic one while it is being worked on, else the last static one
	Status Status
	Wanted Wanted // only beside InProcessing

	// Data is what the task was enqueued with, or what its latest finished stage has left (see Tx.SetData): nil if that
	// is empty. Whoever gets or gives it has bytes of his own.
	Data []byte

	// Attempt counts the failures of the present stage: errors, and workers that were lost with it. Failure is
	// the text of the latest, at most MaxFailure bytes of it; a stage that finishes clears both.
	Attempt int
	Failure string

	// Due is from when on somebody may claim it, by the store's clock: for a task in processing that is the end of
	// its lease. Zero: never, because it is finished, suspended, cancelled, or has failed for good.
	Due time.Time

	// Worker has it, or had it last. Token rises whenever somebody claims it.
	Worker string
	Token  int64

	Created time.Time
	Changed time.Time // by anything but a heartbeat
}

// MaxFailure bounds Task.Failure, in bytes.
const MaxFailure = 4096

// String names the task for a log.
func (t *Task) String() string { return fmt.Sprintf("%s %d", t.Kind, t.ID) }

// Runs tells whether somebody is working on it or is going to: it is neither finished nor suspended nor cancelled, and
// has not failed for good.
func (t *Task) Runs() bool { return !t.Due.IsZero() }

// Finished tells whether it has reached the last stage of its chain.
func (t *Task) Finished() bool { return t.Status == Normal && !t.Runs() }

// Lease is what the present holder of the task has.
func (t *Task) Lease() Lease { return Lease{t.ID, t.Token} }

// Lease is the right to change a task, from a claim until the lease ends: by the clock of the store, unless
// heartbeats renew it, or because the holder gives it back. Its token fences off whoever held it before.
type Lease struct {
	Task  ID
	Token int64
}
