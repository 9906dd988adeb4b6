package stage

import (
	"context"
	"errors"
	"time"
)

// Store keeps tasks. Each method is one atomic transition, and has been stored when it returns nil, as far as the store
// promises. All methods may be called from any goroutine, and from any process where the store is shared. They may
// block, but not after ctx has ended.
//
// The rules of the transitions, which the stores of this module share, are in an internal package. A store of your own
// writes them again; package storetest, a test suite that every Store must pass, checks them.
//
// Time is the store's own clock, one for all that share it.
//
// Methods that take a Lease are for its holder. For a lease that was lost or has ended they return ErrLeaseLost and
// change nothing, even if the task has not been claimed since.
type Store interface {
	// Enqueue adds a task at a stage, Normal and due at once, and returns its number.
	Enqueue(ctx context.Context, kind, stage string, data []byte) (ID, error)

	// Claim gives at most c.Limit due tasks of the kinds to one worker: those that are due longest, and of equally long
	// ones those with the lower numbers. They may be new, resumed, to be tried again, or left by a worker whose lease has
	// ended. Each becomes InProcessing, due at the end of the lease, with a higher token, at the stage and attempt that
	// c.Enter returns. No task is given to two workers. Claim returns the tasks as they are then.
	Claim(ctx context.Context, c Claim) ([]Task, error)

	// Enter shows that the task is at a stage now, and sets its attempt. It returns the task as it is then. If there is a
	// request to suspend or cancel the task, Enter changes nothing and returns ErrSuspended or ErrCanceled.
	Enter(ctx context.Context, l Lease, stage string, attempt int) (Task, error)

	// Finish ends a dynamic stage. In one transaction it calls commit, unless that is nil, and makes the task reach
	// p.To, with no attempt and no failure. If p.Last, the task is then Normal and never due, and the lease has ended;
	// otherwise the holder continues with it.
	//
	// An error of commit is returned as it is, and nothing has changed then; nor has it if commit panics. commit may be
	// called again after a transaction that failed. If commit has spoilt the transaction, so that trying again is in
	// vain, the error is ErrPermanent. If the cause of an error of commit is the store, such as a full disk, it is also
	// ErrUnavailable.
	//
	// If there is a request to suspend or cancel the task, Finish changes nothing, does not call commit, and returns
	// ErrSuspended or ErrCanceled. If this holder has finished this stage before, in a call whose answer was lost, and
	// done nothing since, Finish does nothing and returns nil, whatever is requested by now. If the task is at another
	// stage than p.From, the error is ErrLeaseLost. A lease that ends while commit runs is good until Finish returns.
	Finish(ctx context.Context, l Lease, p Passage, commit Commit) error

	// Return gives the task back as r says, and returns its status. If there is a request, the task is Suspended or
	// Cancelled at r.Stage instead, never due, with r's attempt and failure. The store makes r.Failure a text that all
	// stores can keep: U+FFFD replaces NUL and invalid UTF-8, and the text is cut to at most MaxFailure bytes, after a
	// whole rune.
	Return(ctx context.Context, l Lease, r Return) (Status, error)

	// Heartbeat renews those of the leases that have not ended: all end that long from now. It answers for each lease,
	// in order.
	Heartbeat(ctx context.Context, leases []Lease, length time.Duration) ([]Beat, error)

	// Suspend takes a task that is due at some time out of work: at once if no worker holds it, else by a request. A
	// worker whose lease has ended holds the task until the next claim. Suspend reports whether that changed anything.
	// If there is no such task, the error is ErrNotFound, here and below.
	Suspend(ctx context.Context, id ID) (bool, error)

	// Resume makes a Suspended task Resumed and due at once, and withdraws a request to suspend. If failed is set, it
	// does the same for a task in Error, whose attempts begin anew. It reports whether that changed anything.
	Resume(ctx context.Context, id ID, failed bool) (bool, error)

	// Cancel ends a task that has not finished: at once if no worker holds it, else by a request, which replaces one to
	// suspend. It reports whether that changed anything.
	Cancel(ctx context.Context, id ID) (bool, error)

	// Get returns the task.
	Get(ctx context.Context, id ID) (Task, error)

	// List returns tasks in order of their numbers.
	List(ctx context.Context, s Selection) ([]Task, error)
}

// Claim is what a worker asks for.
type Claim struct {
	Worker string
	Kinds  []string
	Limit  int
	Length time.Duration // of the lease

	// Enter gets a task as it was before the claim, and returns the stage and attempt that it has from now on. It is
	// called inside of the transaction, perhaps more than once, and must do nothing else.
	Enter func(t *Task) (stage string, attempt int)
}

// Passage is the end of a dynamic stage.
type Passage struct {
	From, To string // a dynamic stage and the static one after it
	Last     bool   // To is the last stage of the chain
}

// Return says how a task is given back.
type Return struct {
	Stage   string // a static one, unless the chain knows of none
	Status  Status
	Attempt int
	Failure string
	Runs    bool          // the task may be claimed again,
	After   time.Duration // that long from now
}

// Beat is the answer to a heartbeat for one lease.
type Beat struct {
	Lost   bool
	Wanted Wanted
}

// Selection says which tasks to list. A zero field matches all tasks.
type Selection struct {
	Kind    string
	Stage   string
	Status  Status
	After   ID   // only those with a higher number
	Limit   int  // 0 means no limit
	Running bool // only those for which Task.Runs is true
}

// Tx is the transaction in which a stage ends: what is written in it becomes visible together with the static stage, or
// not at all. The documentation of a store in SQL says how a Commit gets at its transaction. A Tx is good until the
// Commit that it was given to returns.
type Tx interface {
	// SetData replaces Task.Data, for the next stage and for all readers.
	SetData([]byte)
}

// Commit writes the results of a stage. It is called when the stage has been computed. Meanwhile other writers of the
// store may wait, heartbeats too: it should do nothing but write, and for much less than a lease, or other workers lose
// theirs. It must not call the Engine or the Store, which would deadlock; to enqueue a task in it, a store in SQL has a
// function that takes its transaction. It may be called again if the transaction has failed.
type Commit func(Tx) error

// Errors of a Store, to be found with errors.Is.
var (
	ErrNotFound  = errors.New("stage: no such task")
	ErrLeaseLost = errors.New("stage: lease lost")
	ErrSuspended = errors.New("stage: suspended")
	ErrCanceled  = errors.New("stage: cancelled")

	// ErrUnavailable marks an error of a Commit whose cause is the store: the Commit is called again.
	ErrUnavailable = errors.New("stage: the store is not available")
)
