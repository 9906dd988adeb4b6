package coro

import (
	"errors"
	"iter"
	"runtime/debug"

	"github.com/daimon-go/daimon/act"
)

// worker is a coroutine. It plays one body after the other, and rests between two.
type worker struct {
	crew  *crew
	co    *Co                               // whose body it plays
	next  func() (act.Directive, bool)      // switches to the coroutine, until it answers
	stop  func()                            // ends one that rests
	yield func(act.Directive) (onward bool) // answers, and switches back
}

// crew is the workers of a scheduler.
type crew struct {
	s       *act.Scheduler
	live    int       // those that have a body
	resting []*worker // at most restful
	current *Co       // the innermost one whose body is running
	buffers [][]byte  // of Conn.copy
	closed  bool      // s is
}

// restful is how many finished coroutines of a scheduler are kept to be used again.
const restful = 256

var crews = act.NewLocal(func(s *act.Scheduler) *crew { return &crew{s: s} })

// Count tells how many coroutines of s have a body that has not ended, and how many rest. It is for the
// thread of s.
func Count(s *act.Scheduler) (live, resting int) {
	c := crews.Get(s)
	return c.live, len(c.resting)
}

// engage gives co a worker.
func (c *crew) engage(co *Co) {
	if c.live++; len(c.resting) == 0 {
		c.hire()
	}
	n := len(c.resting) - 1
	w := c.resting[n]
	c.resting[n] = nil
	c.resting = c.resting[:n]
	w.co, co.worker = co, w
}

func (c *crew) hire() {
	c.s.Tie(c)
	w := &worker{crew: c}
	w.next, w.stop = iter.Pull(w.work)
	c.resting = append(c.resting, w)
}

// Untie ends the coroutines that rest, if nobody else holds s to this thread.
func (c *crew) Untie() bool {
	if c.live > 0 {
		return false
	}
	for _, w := range c.resting {
		w.stop()
	}
	c.resting = nil
	return true
}

// Close is called with the scheduler's; its tasks have been dropped before.
func (c *crew) Close() error {
	c.closed = true
	return nil
}

// resume lets the body go on until it answers. A panic in it comes through here, raised again by play.
func (c *crew) resume(co *Co) act.Directive {
	co.outer, c.current, co.running = c.current, co, true
	d, _ := co.worker.next()
	c.current, co.running = co.outer, false
	return d
}

// work is the coroutine's function.
func (w *worker) work(yield func(act.Directive) bool) {
	w.yield = yield
	for {
		w.play()
		if len(w.crew.resting) == restful {
			return
		}
		w.crew.resting = append(w.crew.resting, w)
		if !yield(act.Done) {
			return
		}
	}
}

// play runs a body to its end. A Goexit takes the coroutine along, and left to itself iter.Pull would have the caller's
// goroutine exit as well; a panic that is raised on the way out it only passes on. So that is what is done. Behind a panic
// there may be a Goexit, which goes on when the panic has been recovered, and which nothing tells of: so a panic costs the
// coroutine, too.
func (w *worker) play() {
	co := w.co
	returned := false
	defer func() {
		w.co, co.worker = nil, nil
		w.crew.live--
		if co.cancel != nil {
			co.cancel(ErrStopped)
		}
		if returned {
			return
		}
		w.crew.current, co.running = co.outer, false // resume is not going to
		if v := recover(); v != nil {
			co.panicked = act.Recovered(v)
		} else {
			co.panicked = &act.Panic{Value: errGoexit, Stack: debug.Stack()}
		}
		co.abortDialled()
		co.panicked.Raise()
	}()
	co.err = co.program.body(co)
	if returned = true; co.stopped {
		co.abortDialled()
	}
}

var errGoexit = errors.New("coro: runtime.Goexit in the body")
