package act

import (
	"errors"
	"time"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/panics"
	"github.com/daimon-go/daimon/internal/pool"
)

// Offload runs f on another goroutine as the rest of this turn. Return the Directive that it returns:
//
//	return t.Offload(func() { a.sum, a.err = slowSum(a.file) })
//
// After the turn the Group's Executor calls f. Until f has returned the action belongs to f: it gets no turn, no Stop
// and no Close. So f may use the action's own fields, but nothing that belongs to the scheduler. The task's next turn
// comes when f has returned. A shutdown waits for f within its bounds. If the task is dropped, f is abandoned: the
// action, or what its Abandon returns, is closed when f returns, on the goroutine of f if the scheduler has been closed
// by then. A panic or Goexit in f fails the task. Offload panics outside the task's turn, and if it is called twice in
// one. To wait for a function and for something else, see [Call].
func (t *Task) Offload(f func()) Directive {
	t.s.touch()
	if f == nil {
		panic("act: Offload of a nil function")
	}
	if t.s.running != t || t.flags&offloading != 0 {
		panic("act: Offload is for the task whose turn it is, once a turn")
	}
	t.flags |= offloading
	x := t.more()
	x.offload = &offload{task: t, f: f}
	x.offload.node.Of = x.offload
	return Async
}

// Abandoner is an Action with parts that an offloaded function does not need, such as the connection that the action
// serves. If the task is dropped while the function runs, Abandon is called instead of Close, on the scheduler's
// thread. It closes the parts that the function does not need and returns the part that belongs to the function, nil if
// there is none. The scheduler closes that part when the function has returned. A parent forwards Abandon to the child
// that returned Async, as [Child] does.
type Abandoner interface {
	// Abandon closes the parts that the function does not need, and returns the rest, or nil. It must not block.
	Abandon() Action
}

// abandon returns the part of a that belongs to the function that it has offloaded.
func abandon(a Action) Action {
	if x, ok := a.(Abandoner); ok {
		return x.Abandon()
	}
	return a
}

// send gives the function of t to the executor.
func (s *Scheduler) send(t *Task) {
	t.flags &^= offloading
	t.state = offloaded
	t.extra.offload.since = s.now
	s.counts.offloads++
	s.group.cfg.Executor.Execute(t.extra.offload.run)
}

// offload is an offloaded function, and the remote event of its end.
type offload struct {
	node  inbox.Node[remoteEvent]
	task  *Task
	f     func()
	err   *Panic        // written before the event is delivered
	since time.Duration // when it was given to the Executor
}

// run notices a Goexit too, which runs deferred functions and recovers nothing.
func (o *offload) run() {
	o.err = &Panic{Value: errGoexit}
	defer func() {
		if !o.task.s.deliver(&o.node) {
			o.task.closeAll() // the scheduler is closed
			o.task.s.letGo()
		}
	}()
	o.err = catch(o.f)
}

func (o *offload) handle(s *Scheduler) {
	s.counts.returned++
	t := o.task
	switch {
	case t.state == abandoned:
		s.remove(t)
		s.letGo()
	case o.err != nil:
		s.finish(t, o.err)
	default:
		t.extra.offload = nil
		s.trace.woken(t)
		s.enqueue(t)
	}
}

// errGoexit is the value of a Panic that stands for a runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit")

// catch calls f and returns its panic.
func catch(f func()) (p *Panic) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // nil: a Goexit goes on
			p = panics.Recovered(v)
		}
	}()
	f()
	returned = true
	return nil
}

// Call is an action that calls F on another goroutine and waits for it. Unlike with [Task.Offload], the task can wait
// for other things as well. F runs in parallel with the turns of its task, so it must touch only what it captured by
// value. A Call is used by pointer, once, on the scheduler's thread:
//
//	lookup := act.Call[[]string]{F: func() ([]string, error) { return net.LookupHost(name) }}
//	if d := lookup.Act(t); d != act.Done {
//		return d
//	}
//	use(lookup.Value)
//
// It fails with the error of F. A shutdown does not end it. If it is closed before F has returned, the result is
// ignored, and F no longer keeps Run from returning. Closing does not stop F, not even if F waits for a place among Offloads.
type Call[T any] struct {
	F     func() (T, error) // the function to call; it may block. Without one the first turn panics
	On    Executor          // what calls F; nil means the Group's Executor
	Value T                 // the value that F returned: valid when the Call is Done

	under *call[T]
	err   error
	ended Directive
}

// Act starts F in its first turn, and returns Wait until F has returned. Then it returns Done, or Failed with the error
// of F. A panic in F fails the Call with a [*Panic].
func (c *Call[T]) Act(t *Task) Directive {
	if c.under == nil && !c.ended.Finished() {
		if c.F == nil {
			panic("act: a Call without F")
		}
		on := c.On
		if on == nil {
			on = t.s.group.cfg.Executor
		}
		c.under = startCall(t.s, on, c.F)
	}
	if u := c.under; u != nil {
		if !u.over {
			u.waker = t.Waker()
			return Wait
		}
		c.Value, c.err, c.ended, c.under = u.value, u.err, Done, nil
		if c.err != nil {
			c.ended = Failed
		}
	}
	if c.ended == Failed {
		return t.Fail(c.err)
	}
	return Done
}

// Describe implements [Describer]: while F runs, it names F as what the task waits for.
func (c *Call[T]) Describe(d *Description) {
	if c.under != nil && !c.under.over {
		d.WaitsFor("a function on another goroutine: " + Name(c.F))
	}
}

// Close makes the Call ignore F's result if F has not returned: the Call has then failed with [ErrDropped]. F is not
// interrupted. Close is for the scheduler's thread, and returns nil.
func (c *Call[T]) Close() error {
	if c.under != nil {
		c.under.waker = Waker{}
		c.under, c.err, c.ended = nil, ErrDropped, Failed
	}
	return nil
}

// call is a running function; it outlives a Call that is closed.
type call[T any] struct {
	node  inbox.Node[remoteEvent]
	value T
	err   error
	over  bool  // on the scheduler's thread
	waker Waker // the latest
}

func startCall[T any](s *Scheduler, on Executor, f func() (T, error)) *call[T] {
	u := &call[T]{err: errGoexit} // unless f returns
	u.node.Of = u
	s.counts.offloads++
	on.Execute(func() {
		defer s.deliver(&u.node)
		if p := catch(func() { u.value, u.err = f() }); p != nil {
			u.err = p
		}
	})
	return u
}

func (u *call[T]) handle(s *Scheduler) {
	s.counts.returned++
	u.over = true
	u.waker.Wake()
}

// Executor calls functions on goroutines other than the schedulers'. Implement one to use a pool of your own as
// Config.Executor; the default is a pool of at most Config.Offloads goroutines. Execute may be called from any
// goroutine. It must not block, and must call every f once, sooner or later.
//
// An Executor may have a method Reserve(n int) Executor, for any goroutine. It returns an Executor that runs up to n
// functions at a time, which do not queue behind others: the functions of bridges, of blocking handlers and of stages.
// Without Reserve they share the Executor.
type Executor interface {
	// Execute arranges for f to be called on another goroutine, and returns at once. Any goroutine may call it.
	Execute(f func())
}

// Executor returns the Group's Executor. Any goroutine.
func (s internals) Executor() Executor { return s.group.cfg.Executor }

// Reserve returns an Executor for functions that must not queue with others: n goroutines of its own, in addition to
// the Offloads, if the Config.Executor can reserve them. Any goroutine.
func (s internals) Reserve(n int) Executor {
	if n < 1 {
		panic("act: Reserve of no goroutines")
	}
	if r, ok := s.group.cfg.Executor.(interface{ Reserve(n int) Executor }); ok {
		return r.Reserve(n)
	}
	return s.group.cfg.Executor
}

// executor is the default Executor.
type executor struct{ *pool.Pool }

// Reserve returns another pool.
func (executor) Reserve(n int) Executor { return executor{pool.New(n)} }
