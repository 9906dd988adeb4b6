package act

import (
	"sync"
	"sync/atomic"

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

// Post has f called once on the scheduler's thread, in a pass, in the order of posting, at most 64 a pass. It may be called
// from any goroutine. The inbox holds Config.Inbox functions. If it is full, Post waits for room on a plain goroutine; on
// the thread of any scheduler, which must not block, it returns false. It also returns false once the scheduler is closed,
// and functions that are in the inbox then are not called. A posted function keeps Run from returning.
func (s *Scheduler) Post(f func(*Scheduler)) bool {
	if !s.posts.Push(f) && !s.postPatiently(f) {
		return false
	}
	s.interrupt()
	return true
}

// postPatiently waits for room. It counts itself before it tries, and announce looks at the count after what may let it
// succeed, so one of them sees the other.
func (s *Scheduler) postPatiently(f func(*Scheduler)) bool {
	if threads.here() {
		return false
	}
	r := &s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	for !s.posts.Closed() {
		if s.posts.Push(f) {
			return true
		}
		r.changed.Wait()
	}
	return false
}

// runPosts calls posted functions. A panic is logged.
func (s *Scheduler) runPosts() {
	for range postsAPass {
		f, ok := s.posts.Pop()
		if !ok {
			break
		}
		if p := s.guard(func() { f(s) }); p != nil {
			s.logger.Error("a posted function panicked", zap.Any("value", p.Value), zap.ByteString("stack", p.Stack))
		}
		if len(s.ends) > 0 {
			s.endTurnAfterPanic(label("posted function"))
		}
		s.ended++
	}
	s.room.announce()
}

// deliver queues a remote event. After Close it does nothing and returns false.
func (s *Scheduler) deliver(n *inbox.Node[remoteEvent]) bool {
	pushed := s.remoteEvents.Push(n)
	if pushed {
		s.interrupt()
	}
	return pushed
}

func (s *Scheduler) handleAll(n *inbox.Node[remoteEvent]) {
	for n != nil {
		next := n.Next() // handle may see n delivered again
		n.Of.handle(s)
		n = next
	}
}

func (s *Scheduler) inboxEmpty() bool {
	return s.posts.Empty() && s.remoteEvents.Empty() && s.orders.Empty()
}

// interrupt ends the sleep of the thread, if it sleeps: with one write, however many events come.
func (s *Scheduler) interrupt() {
	if s.trace != nil && s.trace.RemoteEvent != nil {
		s.trace.RemoteEvent(s)
	}
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.idler.Load().Interrupt()
	}
}

// room lets plain goroutines wait for room in the inbox.
type room struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting atomic.Int32
}

// announce takes the lock only if a goroutine waits.
func (r *room) announce() {
	if r.waiting.Load() > 0 {
		r.mu.Lock()
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

// threads are those in Run or Step of any scheduler of the process: Post must not wait there. It is a set of threads and
// not of goroutines, since a coroutine is another goroutine on the same thread.
var threads threadSet

type threadSet struct {
	mu  sync.Mutex
	ids map[uint64]int // how many nested Runs and Steps
}

func (ts *threadSet) enter(id uint64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.ids == nil {
		ts.ids = map[uint64]int{}
	}
	ts.ids[id]++
}

func (ts *threadSet) leave(id uint64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.ids[id]--; ts.ids[id] == 0 {
		delete(ts.ids, id)
	}
}

func (ts *threadSet) here() bool {
	id := thread.ID()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.ids[id] > 0
}
