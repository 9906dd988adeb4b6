package stage

import (
	"context"
	"errors"
	"time"
)

// Store keeps tasks. Each method is one atomic transition, and what it returns nil for is there to stay, as far as
// the store promises. All of it may be called from any goroutine, and from any process where the store is shared. It
// may block, until ctx has ended at the latest. Package storetest has the suite that every Store passes.
//
// Time is the store's own clock, one for all who share it.
//
// Methods that take a Lease are for its holder. To anybody else, and to a holder after its lease has ended, even if
// nobody has claimed the task since, they answer ErrLeaseLost and change nothing.
type Store interface {
	// Enqueue adds a task at a stage, Normal and due at once, and returns its number.
	Enqueue(ctx context.Context, kind, stage string, data []byte) (ID, error)

	// Claim gives at most c.Limit tasks of the kinds to one worker, those that are due, the longest due first and
	// of equally long ones the one with the lower number: whether they are new, resumed, to be tried again, or were
	// left by a worker whose lease has ended. Each becomes InProcessing, due at the end of the lease, with a higher
	// token, at the stage and attempt that c.Enter says. No task is given to two. It returns the tasks as they are
	// then.
	Claim(ctx context.Context, c Claim) ([]Task, error)

	// Enter shows that the task is at a stage now, and sets its attempt; it returns the task as it is then. If somebody
	// wants the task to be suspended or cancelled it changes nothing and answers ErrSuspended or ErrCancelled.
	Enter(ctx context.Context, l Lease, stage string, attempt int) (Task, error)

	// Finish ends a dynamic stage: in one transaction it calls commit, unless that is nil, and makes the task reach
	// p.To, with no attempt and no failure. If p.Last it is then Normal, never due, and given back; otherwise the
	// holder goes on with it. An error of commit is returned as it is, and nothing has changed then; so it is when
	// commit panics. commit may be called again after a transaction that failed. An error of the store's own that
	// trying again would not mend, since commit has spoilt its transaction, is Permanent; one of commit that is the
	// store's trouble, such as a full disk, is ErrUnavailable, too.
	//
	// If somebody wants the task to be suspended or cancelled it changes nothing, calls nothing, and answers
	// ErrSuspended or ErrCancelled. If this holder has finished this very stage before, in a call whose answer was
	// lost, and done nothing since, it calls nothing and answers nil, whatever somebody wants by now. If the task is at
	// another stage than p.From, somebody has moved it: ErrLeaseLost. A lease that ends while commit runs is still good
	// for this.
	Finish(ctx context.Context, l Lease, p Passage, commit Commit) error

	// Return gives the task back, as r says, unless somebody wants it to be suspended or cancelled: then it is
	// Suspended or Cancelled at r.Stage, never due, with r's attempt and failure. It returns the status. The store
	// makes r.Failure a text that all stores can keep: U+FFFD stands for NUL and for what is no UTF-8, and what is
	// beyond MaxFailure is cut off, behind a whole rune.
	Return(ctx context.Context, l Lease, r Return) (Status, error)

	// Heartbeat renews those of the leases that have not ended, all for so long from now, and answers for each, in
	// order, how matters stand.
	Heartbeat(ctx context.Context, leases []Lease, length time.Duration) ([]Beat, error)

	// Suspend takes a task that is due some time out of work: at once if no worker has it, else as something that
	// is Wanted. One whose lease has ended has it until the next claim. It reports whether that made a difference.
	// ErrNotFound if there is no such task, here and below.
	Suspend(ctx context.Context, id ID) (bool, error)

	// Resume makes a Suspended task Resumed and due at once, and withdraws a suspension that is still wanted. If
	// failed it does so with a task in Error as well, whose attempts begin anew. It reports whether it did.
	Resume(ctx context.Context, id ID, failed bool) (bool, error)

	// Cancel ends a task that has not finished: at once if no worker has it, else as something that is Wanted,
	// instead of a suspension too. It reports whether that made a difference.
	Cancel(ctx context.Context, id ID) (bool, error)

	// Get returns the task.
	Get(ctx context.Context, id ID) (Task, error)

	// List returns tasks in order of their numbers.
	List(ctx context.Context, f Filter) ([]Task, error)
}

// Claim is what a worker asks for.
type Claim struct {
	Worker string
	Kinds  []string
	Limit  int
	Length time.Duration // of the lease

	// Enter returns the stage at which a task, as it was before the claim, is to be shown from now on, and its
	// attempt. It is called inside of the transaction, perhaps more than once, and must do nothing else.
	Enter func(t *Task) (stage string, attempt int)
}

// Passage is the end of a dynamic stage.
type Passage struct {
	From, To string // a dynamic stage and the static one behind it
	Last     bool   // that is the last of the chain
}

// Return is how a task is given back.
type Return struct {
	Stage   string // a static one, unless the chain knows of none
	Status  Status
	Attempt int
	Failure string
	Runs    bool          // it is to be claimed again,
	After   time.Duration // so long from now
}

// Beat is how matters stand with a lease.
type Beat struct {
	Lost   bool
	Wanted Wanted
}

// Filter says which tasks to list. Zero fields let all through.
type Filter struct {
	Kind   string
	Stage  string
	Status Status
	After  ID  // only those with a higher number
	Limit  int // 0: all

	// Running leaves out those that are finished, suspended, cancelled, or have failed for good: see Task.Runs.
	Running bool
}

// Tx is the transaction in which a stage ends: what is done in it is there exactly when the stage's static one is. A
// store of SQL gives its own transaction for it, too: see there. It ends with the Commit that it was given to.
type Tx interface {
	// SetData replaces Task.Data, for the next stage and for everybody else.
	SetData([]byte)
}

// Commit writes the results of a stage. It is called when the stage has been computed, while the store may hold up
// other writers, heartbeats too: it should do nothing but write, and for much less than a lease, or others lose theirs.
// It must not call the Engine or the Store, which would wait for it for ever; to enqueue a task there, a store of SQL
// has a function for its transaction. It may be called again if the transaction has failed.
type Commit func(Tx) error

// Errors of a Store, to be found with errors.Is.
var (
	ErrNotFound  = errors.New("stage: no such task")
	ErrLeaseLost = errors.New("stage: lease lost")
	ErrSuspended = errors.New("stage: suspended")
	ErrCancelled = errors.New("stage: cancelled")

	// ErrUnavailable is beside the error of a Commit that was not its own fault: it is called again.
	ErrUnavailable = errors.New("stage: the store is not available")
)
