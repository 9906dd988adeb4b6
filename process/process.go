package process

import (
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Action is what a process does, in turns, as act.Action is what a task does. Act receives what there is to receive,
// must not block, and says how matters stand: Wait, for a message or for whatever has the process's Poke; Yield, to
// go on as soon as it is its turn; Done; Failed. A message that comes in a turn, and is not received in it, makes another
// one. Wait with messages that have not been received is for something else: they alone make no turn, so who has no
// reason to let them lie receives until there is none.
//
// An Action that is an io.Closer is closed when the process has ended, however it ended, on whichever thread it did. What
// it sends then it sends from the System.
type Action[M any] interface {
	Act(p *Self[M]) act.Directive
}

// Func returns an Action whose turns are calls of f.
func Func[M any](f func(p *Self[M]) act.Directive) Action[M] { return function[M](f) }

type function[M any] func(p *Self[M]) act.Directive

func (f function[M]) Act(p *Self[M]) act.Directive { return f(p) }

// Handler returns an Action that calls h with each message. It ends when h calls Self.Exit or Self.Fail.
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

// Stopper is an Action that wants to be told of orders. Stop is called once for each order that makes the terms
// stricter, before the next turn of the process, in which it may end, or send what is to be sent before; of several that
// come before that turn it is told of the last. A process whose action is no Stopper goes on with what it is sent.
type Stopper[M any] interface {
	Stop(p *Self[M], o shutdown.Order)
}

// Options are those of one process. The zero Options are good.
type Options struct {
	// Name is for logs and notices; "" means its number.
	Name string
	// Limit bounds the messages that lie in the mailbox, with those of the turn under way until that ends; 0 means
	// Config.Limit. Unbounded is a choice.
	Limit int
	// Overflow is what happens to a message when the mailbox is full.
	Overflow Overflow
}

// Unbounded is the Limit of a mailbox that takes whatever comes.
const Unbounded = -1

// Overflow is what happens to a message when the mailbox is full.
type Overflow uint8

const (
	// Block makes the sender wait. The message of a process is added beyond the bound, and the sender has no turn until
	// there is room; so a mailbox exceeds its bound by at most what each sending process sends in one turn. Any other
	// sender gets an error that can be waited for: see Blocked and Ref.Deliver.
	//
	// Two processes that wait for each other's mailboxes wait until one is killed. A process that sends to itself
	// never waits.
	Block Overflow = iota
	// Drop drops the message, which Stats counts.
	Drop
	// Reject refuses the message with ErrFull.
	Reject
)

// Reason is why a process has ended.
type Reason uint8

const (
	_        Reason = iota
	Normal          // Done or Exit
	Failed          // by itself: see Notice.Err
	Panicked        // Notice.Err is an *act.Panic
	Killed          // by Kill
	Linked          // with another to which it was linked, of which Notice.Err tells
	Stopped         // with its system: an order has ended it, or the System was closed
)

func (r Reason) String() string {
	names := [...]string{"alive", "normal", "failed", "panic", "killed", "linked", "stopped"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// abnormal reports whether linked processes end with one that has ended for this reason.
func (r Reason) abnormal() bool { return r != Normal && r != Stopped }

// Errors of Send and of those who wait for a process.
var (
	ErrDead = errors.New("process: nobody is there")
	ErrFull = errors.New("process: the mailbox is full")
)

// Ref is who a process is, for all others. Refs of one process are equal, and of no other, also when it has ended. It
// may be kept and sent anywhere; the zero Ref is nobody. Its methods may be called on any goroutine, unless they say
// otherwise.
type Ref[M any] struct{ p *Self[M] }

// AnyRef is a Ref or a Self of any message type. Compare Refs, and use them as keys of maps; a Self is not equal to its
// Ref.
type AnyRef interface {
	// ID is a number that no other process of the System has or will have; 0 for nobody.
	ID() uint64
	// Kill ends the process: before its next turn, or when the present one has ended. Its messages are dropped. It
	// reports whether that was still to be done. One that ends by itself in its present turn has that as its Reason.
	Kill() bool
	String() string
	process() *core
}

// ID is a number that no other process of the System has or will have; 0 for nobody.
func (to Ref[M]) ID() uint64 {
	if to.p == nil {
		return 0
	}
	return to.p.id
}

// String is the process's name, or its number.
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

// Ref is who p is, for others.
func (p *Self[M]) Ref() Ref[M] { return Ref[M]{p} }

// ID is that of Ref.
func (c *core) ID() uint64 { return c.id }

func (c *core) process() *core { return c }

// Scheduler is where the present turn is taken. The next may be elsewhere.
func (c *core) Scheduler() *act.Scheduler { return c.on.s }

// System is the one that the process belongs to.
func (c *core) System() *System { return c.sys }

// Sender is who sends, or asks for a process: a process in its turn, a *act.Task in its turn, or the System, for any
// goroutine. Whatever else knows its scheduler is one on that scheduler's thread, such as a *httpd.Request.
type Sender interface {
	// Scheduler is where the turn is; nil for a System.
	Scheduler() *act.Scheduler
}

// Spawn makes a process. Its first turn comes on the reactor of the Sender, behind all that are queued there, unless
// another is idle and takes it; with a System on an idle one, if there is one, and from any goroutine. On a System that
// is closed it ends at once, as Stopped. Spawn panics without an action, in a Group without a System, and before the
// first Setup has returned.
func Spawn[M any](from Sender, a Action[M], o Options) Ref[M] {
	if a == nil {
		panic("process: no action to make a process of")
	}
	if o.Overflow > Reject {
		panic(fmt.Sprintf("process: Overflow(%d) means nothing", o.Overflow))
	}
	sys, r := whereabouts(from)
	p := &Self[M]{acting: a, full: o.Overflow, limit: sys.limit(o.Limit)}
	p.sys, p.body = sys, p
	_, p.stops = a.(Stopper[M])
	if o.Name != "" {
		p.more().name = o.Name
	}
	sys.number(&p.core, r)
	sys.schedule(&p.core, r)
	if sys.closed.Load() != 0 && sys.over() {
		sys.tooLate(&p.core)
	}
	return Ref[M]{p}
}
