package coro

import (
	"errors"
	"iter"
	"runtime/debug"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
)

// worker is a coroutine of the Go runtime. It runs one body after the other.
type worker struct {
	pool  *pool
	co    *Co                               // its body runs here
	next  func() (act.Directive, bool)      // switches to the coroutine until it yields
	stop  func()                            // ends an idle coroutine
	yield func(act.Directive) (onward bool) // switches back with a Directive
}

// pool is the workers of a scheduler.
type pool struct {
	s       *act.Scheduler
	live    int       // workers that have a body
	idle    []*worker // at most maxIdle
	current *Co       // the innermost whose body is running
	closed  bool      // the scheduler is closed
}

// maxIdle is how many workers of a scheduler are kept for the next bodies.
const maxIdle = 256

var pools = act.NewLocal(func(s *act.Scheduler) *pool { return &pool{s: s} })

// Counts implements facts.Counter.
func (p *pool) Counts(add func(name string, n uint64)) {
	add("coroutines", uint64(p.live))
	add("coroutines_kept", uint64(len(p.idle)))
}

// start gives co a worker.
func (p *pool) start(co *Co) {
	p.live++
	var w *worker
	if n := len(p.idle) - 1; n >= 0 {
		w, p.idle[n] = p.idle[n], nil
		p.idle = p.idle[:n]
	} else {
		p.s.Internals().Tie(p)
		w = &worker{pool: p}
		w.next, w.stop = iter.Pull(w.work)
	}
	w.co, co.worker = co, w
}

// Untie ends the idle workers, unless a body still ties the scheduler to this thread.
func (p *pool) Untie() bool {
	if p.live > 0 {
		return false
	}
	for _, w := range p.idle {
		w.stop()
	}
	p.idle = nil
	return true
}

// Close is called when the scheduler is closed. Its tasks have been dropped before.
func (p *pool) Close() error {
	p.closed = true
	return nil
}

// resume runs the body until it yields. A panic of the body, raised again by run, comes through here.
func (p *pool) resume(co *Co) act.Directive {
	co.outer, p.current, co.running = p.current, co, true
	d, _ := co.worker.next()
	p.current, co.running = co.outer, false
	return d
}

// work is the coroutine's function.
func (w *worker) work(yield func(act.Directive) bool) {
	w.yield = func(d act.Directive) bool {
		onward := yield(d)
		w.pool.s.Internals().Resumed()
		return onward
	}
	w.pool.s.Internals().Resumed()
	for {
		w.run()
		if len(w.pool.idle) == maxIdle {
			return
		}
		w.pool.idle = append(w.pool.idle, w)
		if !w.yield(act.Done) {
			return
		}
	}
}

// run runs a body to its end. After a Goexit the coroutine cannot be used again, and iter.Pull would make the caller's
// goroutine exit as well; but a panic that is raised while the coroutine exits is passed to the caller instead. So run
// raises one. After a panic, too, the coroutine is given up: a Goexit may have caused it, which goes on when the panic
// has been recovered, and which cannot be detected.
func (w *worker) run() {
	co := w.co
	returned := false
	defer func() {
		w.co, co.worker = nil, nil
		w.pool.live--
		if co.cancel != nil {
			co.cancel(ErrStopped)
		}
		if returned {
			return
		}
		w.pool.current, co.running = co.outer, false // resume does not come to it
		if v := recover(); v != nil {
			co.panicked = panics.Recovered(v)
		} else {
			co.panicked = &act.Panic{Value: errGoexit, Stack: debug.Stack()}
		}
		co.abortDialled()
		co.panicked.Raise()
	}()
	co.err = co.body.run(co)
	if returned = true; co.stopped {
		co.abortDialled()
	}
}

var errGoexit = errors.New("coro: runtime.Goexit in the body")
