package store

import (
	"context"
	"errors"
	"time"
)

// Store keeps tasks. Each method is one atomic transition, and has been stored when it returns nil, as far as the store
// promises. All methods may be called from any goroutine, and from any process where the store is shared. They may
// block, but not after ctx has ended.
//
// Time is the store's own clock, one for all that share it.
//
// Methods that take a Lease are for its holder. For a lease that was lost or has ended they return ErrLeaseLost and
// change nothing, even if the task has not been claimed since.
type Store interface {
	// Enqueue adds tasks, all or none, Normal and due when they say. It returns their numbers, which rise in the order
	// of the tasks that it adds. If another task has the Key of a task (see NewTask), it returns the number of the
	// other one. It adds nothing, and the error says why, if a Key is longer than MaxKey or is not UTF-8 without NUL,
	// or if its Within is negative.
	Enqueue(ctx context.Context, tasks ...NewTask) ([]ID, error)

	// Tick runs ticks of periodic tasks. The store has a record for each name: its latest tick. If that is t.Last, and t.Next is
	// later but not later than now, the record becomes t.Next, and t.Tasks are enqueued, in one transaction for all ticks. If the
	// record is later than now, since the clock was set back, t.Next may be earlier than that. A name without a record gets one:
	// the time of the call. The names of a call differ. Tick returns the store's time, and the records as they are then, in the
	// order of ticks.
	Tick(ctx context.Context, ticks ...Tick) (now time.Time, last []time.Time, err error)

	// Claim gives at most c.Limit due tasks of the kinds to one worker. They may be resumed, to be tried again, given
	// back, left by a worker whose lease has ended, or new. Tasks of kinds with a higher priority come first. Within a
	// priority new tasks, which are Normal and have not been claimed before, come last. Otherwise the order is by Due,
	// and then by number. If c.Most bounds a kind, the first tasks of that order are claimed. Claim gives no task of a
	// kind that is paused.
	//
	// Each task becomes InProcessing, due at the end of the lease, with a higher token, at the stage that c.Shows has for
	// it. No task is given to two workers. Claim returns the tasks as they are then. If a Show for lost tasks adds Attempts, the
	// store keeps a record for Failures, at the stage that was lost.
	Claim(ctx context.Context, c Claim) ([]Task, error)

	// Claimed returns the tasks that are in processing by claims of t.Engine with numbers below t.Number, under leases that
	// have not ended, in order of their numbers. An engine asks for them after a claim whose answer was lost.
	Claimed(ctx context.Context, t Ticket) ([]Task, error)

	// Enter moves the task to the dynamic stage that its holder begins, and sets its attempt. It returns the task as it
	// is then. If there is a
	// request to suspend or cancel the task, Enter changes nothing and returns ErrSuspended or ErrCanceled.
	Enter(ctx context.Context, l Lease, stage string, attempt int) (Task, error)

	// Finish ends a dynamic stage. In one transaction it calls commit, unless that is nil, and makes the task reach
	// p.To, with no attempt, no failure and no progress. If p.Last, the task is then Normal and never due, and the lease
	// has ended; otherwise the holder continues with it.
	//
	// An error of commit is returned as it is, and nothing has changed then; nor has it if commit panics. commit may be
	// called again after a transaction that failed. If commit has spoilt the transaction, so that trying again cannot
	// help, the error is ErrPermanent. If the cause of an error of commit is the store, such as a full disk, it is also
	// ErrUnavailable. commit gets ctx.
	//
	// If there is a request to suspend or cancel the task, Finish changes nothing, does not call commit, and returns
	// ErrSuspended or ErrCanceled. If this holder has finished this stage before, in a call whose answer was lost, and
	// done nothing since, Finish does nothing and returns nil, whatever is requested by now. If the task is at another
	// stage than p.From, the error is ErrLeaseLost. A lease that ends while commit runs is good until Finish returns.
	Finish(ctx context.Context, l Lease, p Passage, commit Commit) error

	// Return gives the task back as r says, and returns its status. If there is a request, the task becomes Suspended
	// or Canceled at r.Stage instead, never due, with r's attempt and failure. But a request to suspend is ignored if r
	// has the Status Failed and not Runs: the task has then failed for good. Return keeps r.Progress as Heartbeat does.
	// The store makes r.Failure a text that all stores can keep: U+FFFD replaces NUL and invalid UTF-8, and the text is
	// cut to at most 4096 bytes, after a whole rune.
	//
	// A Return with the Status Failed, even where a request makes something else of it, ends an attempt that has
	// failed. The store keeps a record of it for Failures, if r.Attempt is above the attempt of the task.
	Return(ctx context.Context, l Lease, r Return) (Status, error)

	// Heartbeat renews the leases that have not ended: they end after length from now. It answers for each lease, in
	// order: nil; ErrSuspended or ErrCanceled, which is a request to the holder of a lease that was renewed;
	// ErrLeaseLost; or ErrUnavailable. A store may leave out a lease whose task another call is changing, such as a
	// Finish with a slow Commit, rather than wait for it: such a lease ends when it would have ended, unless a later
	// heartbeat renews it.
	//
	// For a lease that is renewed, Heartbeat keeps the Progress as Task.Progress, if the task is at that stage, until
	// other progress replaces it or a stage finishes. If a lease comes twice, one of the two has Progress at most.
	Heartbeat(ctx context.Context, renewals []Renewal, length time.Duration) (answers []error, err error)

	// Suspend suspends a task that runs (see Task.Runs): at once if no worker holds it, else by a request to the worker.
	// A worker whose lease has ended holds the task until the next claim. Suspend reports whether that changed
	// anything. If there is no such task, the error is ErrNotFound.
	Suspend(ctx context.Context, id ID) (bool, error)

	// Resume makes a Suspended task Resumed and due at once, and withdraws a request to suspend. If failed is set, it
	// does the same for a task that is Failed, whose attempts begin anew. It reports whether that changed anything.
	// If there is no such task, the error is ErrNotFound.
	Resume(ctx context.Context, id ID, failed bool) (bool, error)

	// Cancel ends a task that has not finished: at once if no worker holds it, else by a request, which replaces one to
	// suspend. It reports whether that changed anything. If there is no such task, the error is ErrNotFound.
	Cancel(ctx context.Context, id ID) (bool, error)

	// SetPaused pauses a kind, or ends its pause, and reports whether that changed anything. While a kind is paused, Claim gives
	// no task of it. Nothing else changes: workers go on with tasks that they hold. When SetPaused has returned, no claim is
	// under way that began before the pause. There need not be any task of the kind.
	SetPaused(ctx context.Context, kind string, paused bool) (bool, error)

	// Paused returns the kinds that are paused (see SetPaused), sorted.
	Paused(ctx context.Context) ([]string, error)

	// Get returns the task as it is now. The error is ErrNotFound if the store does not have the task (any more).
	Get(ctx context.Context, id ID) (Task, error)

	// Failures returns the records of the attempts of a task that have failed, of all its stages, in order: the latest
	// ten. The error may be ErrNotFound.
	Failures(ctx context.Context, id ID) ([]Failure, error)

	// List returns tasks in order of their numbers, or the newest first. A task that is enqueued in a transaction becomes
	// visible when that is committed, perhaps later than one with a higher number: a reader that goes on with Selection.After
	// may miss it.
	//
	// Pages are found at once, however many tasks there are: of all, of a Kind, of a Status, of both, those with IDs,
	// with Running if at most 10,000 tasks run, and with Ended if at most 10,000 have ended. With a Stage, with Running
	// or Ended if there are more, and with Normal if few tasks are, the store may read many tasks until it has enough.
	List(ctx context.Context, s Selection) ([]Task, error)

	// Counts returns how many tasks there are of each kind, at each stage, in each status, in order of Kind, Stage and
	// Status. There is no Count of 0. The documentation of a store in SQL says how it counts without reading all tasks.
	Counts(ctx context.Context) ([]Count, error)

	// Purge deletes at most limit tasks that ended at least age ago, by the store's clock, with their keys and records,
	// and returns how many. s is Normal for finished tasks, Canceled, or Failed for tasks that have failed for good. It
	// never deletes tasks that run, are suspended or may run again by themselves. Tasks that ended longest ago come
	// first. Purge may leave out a task that another call is changing.
	Purge(ctx context.Context, s Status, age time.Duration, limit int) (int, error)
}

// NewTask is a task to be enqueued. NewTask of a stage.Engine makes one, at the first stage of the chain.
type NewTask struct {
	Kind, Stage string // the kind of the task, and the first stage of the kind's chain
	Data        []byte // what the task is about, for its processors: see Task.Data. The store keeps a copy
	// The task is due After that long from now, by the store's clock, and not before At. With neither, or with times
	// that have passed, it is due at once. A time after the year 9999 means the end of that year. An engine claims the
	// task at most one and a half times stage.Config.Poll late. A task that is suspended and resumed is due at once.
	After time.Duration
	At    time.Time

	// A Key, unless it is "", makes the task the only one of its Kind with that Key (an idempotency key): if such a
	// task was enqueued less than Within ago, by the store's clock, nothing is added, and Enqueue returns the number of
	// that task. A Within of 0 means: as long as the store has that task. A task that is deleted loses its Key. So an
	// Enqueue may be repeated when its answer was lost. Of tasks with the same Kind and Key in one call the first one
	// counts.
	Key    string
	Within time.Duration
}

// MaxKey is the length of the longest NewTask.Key, in bytes. Enqueue fails with a longer one.
const MaxKey = 256

// Tick is a tick of a periodic task that an engine wants to run: an argument of Store.Tick.
type Tick struct {
	Name  string    // the name of the periodic task, in stage.Upkeep.Periodic
	Last  time.Time // the latest tick that the engine knows of; the zero Time if it knows none
	Next  time.Time // the tick to run, in whole milliseconds
	Tasks []NewTask // the tasks to enqueue, if no other engine has run the tick
}

// Claim is a worker's request for tasks: the argument of Store.Claim.
type Claim struct {
	Ticket                // the name of this claim
	Worker string         // the name of the worker, which becomes Task.Worker
	Kinds  []string       // the kinds to claim tasks of
	Limit  int            // the most tasks to claim
	Most   map[string]int // the most tasks of a kind, within Limit; a kind without an entry has no bound of its own
	Length time.Duration  // how long the leases last, from the claim

	// Priorities has the priorities of kinds: tasks of a kind with a higher one come first. A kind without an entry has 0.
	Priorities map[string]int

	// Shows says to which stages the claim moves tasks. A task that has no entry stays at the stage at which it is found.
	Shows []Show
}

// Ticket identifies a claim, so that an engine whose claim had no answer can ask what it was given: see Store.Claimed.
type Ticket struct {
	Engine int64 // identifies the engine, which has chosen it at random
	Number int64 // the number of the claim; each claim of an engine has a higher one than those before
}

// Show tells a claim to which stage to move the tasks of a kind that it finds at a stage: to the dynamic stage on which
// the worker begins. There is one at most for each Kind, Found and Lost.
type Show struct {
	Kind  string // the kind of the tasks
	Found string // the stage at which the claim finds the tasks
	Lost  bool   // true for tasks whose workers were lost (they are InProcessing), false for all others

	Stage    string // the stage to which the claim moves the tasks
	Attempts int    // what the claim adds to Task.Attempt
}

// Passage is the step from a dynamic stage to the static one after it: an argument of Store.Finish.
type Passage struct {
	From, To string // the dynamic stage that has ended, and the static stage that the task reaches
	Last     bool   // whether To is the last stage of the chain, and so the task has finished
}

// Return says how a worker gives a task back: an argument of Store.Return.
type Return struct {
	Stage   string        // the stage to which the task goes back: its last static one, if the chain has that
	Status  Status        // the task's status from now on: Normal, Resumed, Suspended or Failed
	Attempt int           // the new Task.Attempt
	Failure string        // the new Task.Failure; "" for none
	Runs    bool          // whether the task may be claimed again; if not, it is never due
	After   time.Duration // with Runs: how long from now until the task is due

	Progress Progress // the progress of the stage at which the task was; the zero Progress for none
}

// Failure is the record of an attempt that has failed: see Store.Failures. If the worker was lost, the record is made
// when the task is claimed again.
type Failure struct {
	Stage   string    // the stage at which the attempt failed
	Attempt int       // how many attempts of that stage had failed then, this one included
	Time    time.Time // when it failed, by the store's clock
	Text    string    // why: the text of Task.Failure, or "stage: the worker was lost"
}

// Renewal is the renewal of one lease, with progress of its task that the store keeps: an argument of Store.Heartbeat.
type Renewal struct {
	Lease
	Progress
}

// Progress is the progress that a processor has noted. The zero Progress is none, and leaves earlier progress as it is.
type Progress struct {
	Stage string // the dynamic stage that the progress is of; the store ignores a Progress of another stage
	Data  []byte // the progress, at most 4096 bytes; the store keeps a copy
}

// Selection says which tasks Store.List returns. A zero field matches all tasks.
//
// To read page by page, set Limit, and After, or Before with Newest, to the number of the last task of the page before.
type Selection struct {
	Kind    string // only tasks of this kind; "" means all
	Stage   string // only tasks at this stage; "" means all
	Status  Status // only tasks with this status; "" means all
	After   ID     // only tasks with a higher number
	Before  ID     // only tasks with a lower number; 0 means no bound
	Limit   int    // the most tasks to return; 0 means no limit
	Running bool   // only tasks for which Task.Runs is true
	Ended   bool   // only tasks for which Task.Ended is true
	IDs     []ID   // only tasks with one of these numbers; nil means all. The store reads no other tasks
	Newest  bool   // in order of falling numbers: the newest first
}

// Count is the number of tasks of a kind that are at a stage in a status: see Store.Counts.
type Count struct {
	Kind, Stage string // the kind of the tasks, and the stage that they are at
	Status      Status // the status of the tasks
	N           int    // how many tasks there are, above 0
}

// Tx is the transaction in which a stage ends: rows that are written in it become visible together with the static
// stage, or not at all. The documentation of a store in SQL says how a Commit gets at its transaction. A Tx is good
// until the Commit that it was given to returns.
type Tx interface {
	// SetData replaces Task.Data, for the next stage and for all readers, when the Commit succeeds. The store keeps a copy.
	SetData([]byte)
}

// Commit writes the results of a stage. It is called when the stage has been computed. Meanwhile other writers of the
// store may wait, heartbeats too: it should do nothing but write, and for much less than a lease, or other workers lose
// theirs. It must not call the engine or the Store, which would deadlock; to enqueue a task in it, a store in SQL has a
// function that takes its transaction. It may be called again if the transaction has failed.
//
// ctx ends when the lease is lost, and when the call of Finish has taken as long as a lease lasts. Unlike the context of the
// processor, it does not end on a request to suspend or cancel the task, nor when the engine stops. Calls of a database
// should get ctx and not the other one: a driver may close a connection whose context ends.
type Commit func(ctx context.Context, tx Tx) error

// Watcher is an optional interface of a Store that hears of changes by other processes. A stage.Engine that runs calls Watch,
// and then claims new tasks and sees requests before its next poll or heartbeat.
type Watcher interface {
	// Watch calls heard for each hint until ctx has ended, or until it can hear no more: then it returns an error, and is
	// called again later. heard does not block. Hints may be lost, and may come without a reason.
	Watch(ctx context.Context, heard func(Hint)) error
}

// Hint says that a task of a kind has become due, that the pause of a kind has ended, or that there is a request to the
// worker that holds a task.
type Hint struct {
	Kind     string // the kind that has a task due, or whose pause has ended; "" if Wanted is set
	Wanted   ID     // the task for whose worker there is a request; 0 if Kind is set
	Enqueuer int64  // the engine that has enqueued the task, as in Ticket.Engine; 0 for another change, or if the store does not know
}

// Errors of a Store, to be found with errors.Is. ErrLeaseLost, ErrSuspended and ErrCanceled are also causes with which
// the context of a processor ends: see stage.CheckSuspended.
var (
	// ErrNotFound says that the store does not have the task: there never was one with that number, or it was deleted.
	ErrNotFound = errors.New("stage: no such task")
	// ErrLeaseLost says that another worker may hold the task: nothing of the stage is stored any more.
	ErrLeaseLost = errors.New("stage: lease lost")
	// ErrSuspended says that there is a request to suspend the task: its worker stops and gives the task back.
	ErrSuspended = errors.New("stage: suspended")
	// ErrCanceled says that there is a request to cancel the task; as the error of Task.Err, that it was cancelled.
	ErrCanceled = errors.New("stage: canceled")

	// ErrFailed is wrapped by the error of a task that has failed for good: see Task.Err.
	ErrFailed = errors.New("stage: failed for good")

	// ErrPermanent is wrapped by an error after which the stage is not tried again: see stage.Permanent.
	ErrPermanent = errors.New("stage: permanent")

	// ErrUnavailable is wrapped by an error of a Commit whose cause is the store: the engine calls the Commit again. As an
	// answer of Store.Heartbeat it means that the lease was left out: the next heartbeat may renew it.
	ErrUnavailable = errors.New("stage: the store is not available")
)
