package act

import (
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/thread"
)

// postsAPass bounds the posted functions that run in one pass.
const postsAPass = 64

// remoteEvent is something that happens on another goroutine and is handled on the scheduler's thread: a wake-up, the end
// of an offloaded function. It brings its own queue node, so that it is never refused.
type remoteEvent interface {
	handle(*Scheduler)
}

// Post calls f once on the scheduler's thread, in a pass, in the order of posting. Any goroutine may call it. It does
// not wait until f has run. A pass calls at most 64 functions, and ends after about a millisecond; the next one goes
// on. A posted function keeps Run from returning.
//
// The inbox holds Config.Inbox functions. If it is full, Post waits for room on a plain goroutine; on the thread of any
// scheduler, which must not block, it returns a [Blocked]. Once the scheduler is closed, Post returns [ErrClosed], and
// functions that are still in the inbox are not called. After any error f is not called.
//
// The functions of one pass count as one turn: what they write to one connection is sent together. A posted function has
// no task that could wait, so where it may meet a [Blocked], spawn one.
func (s *Scheduler) Post(f func(*Scheduler)) error {
	if f == nil {
		panic("act: Post of a nil function")
	}
	for !s.posts.Push(f) {
		switch {
		case s.posts.Closed():
			return ErrClosed
		case threads.here():
			return (*fullInbox)(s)
		}
		s.room.Wait(s.posts.Full)
	}
	s.interrupt()
	return nil
}

// fullInbox is a Scheduler as the error that its inbox is full.
type fullInbox Scheduler

func (b *fullInbox) Error() string {
	return fmt.Sprintf("act: the inbox of scheduler %d is full", b.index)
}

// Arm implements Blocked.
func (b *fullInbox) Arm(t *Task) { b.room.Add(t.Waker().Remote(), b.posts.Full) }

// runPosts calls posted functions, and returns false if the time of the pass is up. A panic is logged.
func (s *Scheduler) runPosts() (inTime bool) {
	inTime = true
	for n := range postsAPass {
		if n > 0 && s.timeUp() {
			inTime = false
			break
		}
		f, ok := s.posts.Pop()
		if !ok {
			break
		}
		if f == nil {
			continue // of a Broadcast that found another inbox full
		}
		if p := s.guard(func() { f(s) }); p != nil {
			s.logger.Error("a posted function panicked", zap.Any("value", p.Value), zap.ByteString("stack", p.Stack))
			s.Internals().Panicked("a posted function", p.Stack)
		}
		s.ended++
		s.counts.posts++
	}
	if len(s.ends) > 0 {
		s.endTurnAfterPanic("posted function")
	}
	s.room.Announce()
	return inTime
}

// deliver queues a remote event. After Close it does nothing and returns false.
func (s *Scheduler) deliver(n *inbox.Node[remoteEvent]) bool {
	pushed := s.remoteEvents.Push(n)
	if pushed {
		s.interrupt()
	}
	return pushed
}

// handleEvents handles the remote events that have come, first the ones that the previous pass left. It returns false
// if the time of the pass is up.
func (s *Scheduler) handleEvents() (inTime bool) {
	if s.events == nil {
		s.events = s.remoteEvents.TakeAll()
	}
	for s.events != nil {
		n := s.events
		s.events = n.Next() // handle may see n delivered again
		n.Of.handle(s)
		s.counts.remoteEvents++
		if s.events != nil && s.timeUp() {
			return false
		}
	}
	return true
}

// nothingCame reports whether nothing is in the inbox, or taken from it and not handled.
func (s *Scheduler) nothingCame() bool { return s.events == nil && s.inboxEmpty() }

// inboxEmpty may be called from any goroutine. A scheduler with s.events is active: see Group.probe.
func (s *Scheduler) inboxEmpty() bool {
	return s.posts.Empty() && s.remoteEvents.Empty() && s.orders.Empty()
}

// interrupt ends the sleep of the thread, if it sleeps: with one write, however many events come.
func (s *Scheduler) interrupt() {
	s.arrives(nil)
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.idler.Load().Interrupt()
	}
}

// threads is the set of threads in Run or Step of any scheduler of the OS process: Post must not wait there. It holds
// threads, not goroutines, since a coroutine is another goroutine on the same thread.
var threads = threadSet{ids: map[uint64]int{}}

type threadSet struct {
	mu  sync.Mutex
	ids map[uint64]int // how many nested Runs and Steps
}

// add counts n more, or fewer, for a thread.
func (ts *threadSet) add(id uint64, n int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.ids[id] += n; ts.ids[id] == 0 {
		delete(ts.ids, id)
	}
}

func (ts *threadSet) here() bool {
	id := thread.ID()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.ids[id] > 0
}
