package process

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Action is the code of a process: its Act is called for each turn. [Func] and [Handler] make one of a function. Act
// receives messages, must not block, and returns:
//
//   - act.Wait to sleep until a message comes or [Self.Poke] is called,
//   - act.Yield to have another turn after the other processes,
//   - act.Done or act.Failed to end.
//
// A message that arrives during a turn, and is not received in it, causes another turn. Messages that a turn has seen
// and left in the mailbox do not: an Action that returns Wait should first receive until [Self.Receive] returns false.
//
// An Action that is an io.Closer is closed when the process has ended for any reason. Close may be called on any thread,
// and sends with the System as the Sender.
type Action[M any] interface {
	// Act takes one turn of the process: it receives messages of p and returns what comes next. It must not block.
	Act(p *Self[M]) act.Directive
}

// Func returns an Action whose turns are calls of f, for a process that must choose when to receive. If it handles
// messages one by one, use [Handler].
func Func[M any](f func(p *Self[M]) act.Directive) Action[M] { return function[M](f) }

type function[M any] func(p *Self[M]) act.Directive

func (f function[M]) Act(p *Self[M]) act.Directive { return f(p) }

// Handler returns an Action that calls h for each message, on the thread of the scheduler that runs the process. The
// process ends when h calls [Self.Exit] or [Self.Fail].
func Handler[M any](h func(p *Self[M], m M)) Action[M] { return handler[M](h) }

type handler[M any] func(p *Self[M], m M)

func (h handler[M]) Act(p *Self[M]) act.Directive {
	for {
		m, ok := p.Receive()
		if !ok {
			return act.Wait
		}
		h(p, m)
	}
}

// Stopper is an Action that is told of a shutdown. Stop is called in the next turn of the process, before Act, once for
// each request that makes the policy stricter; of several requests before that turn only the last is told. Stop may end
// the process, or send last messages first. A process whose Action is not a Stopper goes on with its messages.
type Stopper[M any] interface {
	// Stop is called in a turn of the process p, before its Act, and must not block. o is the request that is in force.
	Stop(p *Self[M], o shutdown.Order)
}

// Options configure one process: see [Spawn]. The zero Options give it a mailbox of 1024 messages, whose senders wait for room.
type Options struct {
	// Name is for logs, notices and the pages of package inspect; "" means the number of the process. It should contain
	// nothing that a client has sent.
	Name string
	// Limit bounds the messages in the mailbox. A message that is received in a turn counts until the turn ends. 0
	// means 1024, -1 no bound.
	Limit int
	// Reject refuses a message that finds the mailbox full: the error is ErrFull, and package inspect counts it. By
	// default the sender waits. The message of a process is added beyond the bound, and the sender has no turn until
	// there is room; so a mailbox exceeds its bound by at most what each sending process sends in one turn. Any other
	// sender gets an act.Blocked, which a task can wait for; goroutines use Ref.Deliver.
	//
	// Two processes that wait for each other's mailboxes wait until one is killed. A process that sends to itself
	// never waits.
	Reject bool
}

// Reason is why a process has ended: see [Notice].
type Reason uint8

const (
	_        Reason = iota
	Normal          // it returned act.Done, or called Self.Exit
	Failed          // it returned act.Failed, or called Self.Fail: Notice.Err is its error
	Panicked        // a turn panicked: Notice.Err is an *act.Panic
	Killed          // Kill was called, by another process or any goroutine
	Linked          // a process that it was linked to ended: Notice.Err wraps the error of that process
	Stopped         // a shutdown or its supervisor ended it, or the Group was closed
)

// String returns the reason as a lower-case word: normal, failed, panic, killed, linked, stopped.
func (r Reason) String() string {
	names := [...]string{"alive", "normal", "failed", "panic", "killed", "linked", "stopped"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Errors of Ref.Send, Ask and Call.
var (
	// ErrDead says that the process has ended, or ended or failed before it answered: see Supervise.
	ErrDead = errors.New("process: the process has ended")
	// ErrFull says that the mailbox is full, and rejects messages: see Options.
	ErrFull = errors.New("process: the mailbox is full")
)

// Ref is the address of a process: others send to it and end it by its Ref. Refs are equal if they are of the same
// process; no later process has an equal one. A Ref may be kept and sent anywhere, and any goroutine may call its
// methods. The zero Ref is the address of no process, and behaves like the Ref of a process that has ended.
type Ref[M any] struct{ p *Self[M] }

// AnyRef is a Ref or a Self of any message type, for [Watch], [Link] and [Ended]. To compare processes, or to use them
// as keys of a map, use Refs.
type AnyRef interface {
	// Kill ends the process before its next turn, or after the present one, and drops its messages; for a child of a
	// supervisor it is a failure, see Supervise. It reports whether
	// the process was alive and not killed yet. A process that ends by itself in the present turn has its own Reason.
	Kill() bool
	// String returns the name of the process (Options.Name), or its number if it has none. Any goroutine may call it.
	String() string
	process() *core
}

// Kill ends the process before its next turn, or after the present one, as Killed: see [AnyRef]. It reports whether the
// process was alive and not killed yet. Any goroutine may call it.
func (to Ref[M]) Kill() bool { return to.p != nil && to.p.Kill() }

// String returns the name of the process (Options.Name), or its number if it has none; "nobody" for the zero Ref.
func (to Ref[M]) String() string {
	if to.p == nil {
		return "nobody"
	}
	return to.p.String()
}

func (to Ref[M]) process() *core {
	if to.p == nil {
		return nil
	}
	return &to.p.core
}

// Sender identifies the caller of a function that sends or spawns: a process passes its *Self, a task its *act.Task,
// and a goroutine the *System. Anything else that knows its scheduler, such as a *httpd.Request, can be the Sender on
// that thread.
type Sender interface {
	// Scheduler returns the scheduler on whose thread the caller is, in a turn; nil for a System.
	Scheduler() *act.Scheduler
}

// Spawn starts a process and returns its address. With a System as the Sender, any goroutine may call Spawn, and the
// first turn is taken by an idle scheduler if there is one. With any other Sender the process is queued on that
// scheduler, and an idle one may take it. In a System that is closed the process ends at once, as Stopped. Spawn panics
// if a is nil, if the Group has no System, and before the first Setup has returned.
func Spawn[M any](from Sender, a Action[M], o Options) Ref[M] {
	if a == nil {
		panic("process: no action to make a process of")
	}
	sys, r := systemOf(from)
	p := newSelf(sys, a, o)
	sys.number(&p.core, r)
	sys.schedule(&p.core, r)
	return Ref[M]{p}
}

func newSelf[M any](sys *System, a Action[M], o Options) *Self[M] {
	if o.Limit < -1 {
		panic("process: a negative Limit")
	}
	p := &Self[M]{act: a, rejects: o.Reject}
	if o.Limit >= 0 {
		p.limit = int32(min(cmp.Or(o.Limit, sys.limit), maxBound))
	}
	p.sys, p.body = sys, p
	_, p.stops = a.(Stopper[M])
	if o.Name != "" {
		p.more().name = o.Name
	}
	return p
}
