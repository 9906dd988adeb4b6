package act

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/thread"
)

// postsAPass bounds the posted functions run in one pass.
const postsAPass = 64

// recipient is what a letter is for: something that must reach the scheduler's thread and that brings
// its own room, so that it is never refused: a remote wake-up, the end of an offload.
type recipient interface {
	receive(*Scheduler)
}

// Post has f run once on the scheduler's thread, in a pass, in the order of posting, at most 64 a
// pass. It may be called from any goroutine. The inbox holds Config.Inbox functions: when it is full, a
// plain goroutine waits for room, while on the thread of any scheduler, which must not block, Post
// returns false. It also returns false once the scheduler is closed. A function that is still in the
// inbox when the scheduler is closed does not run. A pending function holds Run.
func (s *Scheduler) Post(f func(*Scheduler)) bool {
	if !s.posts.Push(f) && !s.postPatiently(f) {
		return false
	}
	s.rouse()
	return true
}

func (s *Scheduler) postPatiently(f func(*Scheduler)) bool {
	if threads.here() {
		return false
	}
	return s.room.await(func() (done, pushed bool) {
		pushed = s.posts.Push(f)
		return pushed || s.posts.Closed(), pushed
	})
}

// runPosts runs what was posted. A panic is reported and harms nobody else.
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
			s.endTurnAfterPanic(posted{})
		}
		s.ended++
	}
	s.room.announce()
}

// posted is who is reported when the end of a posted function panics.
type posted struct{}

func (posted) String() string { return "posted function" }

// deliver leaves a letter. After Close it is forgotten, and deliver reports false.
func (s *Scheduler) deliver(n *inbox.Node[recipient]) bool {
	pushed, _ := s.letters.Push(n)
	if pushed {
		s.rouse()
	}
	return pushed
}

func (s *Scheduler) openLetters() {
	for n := s.letters.TakeAll(); n != nil; {
		next := n.Next() // receive may see n delivered again
		n.Of.receive(s)
		n = next
	}
}

func (s *Scheduler) inboxEmpty() bool {
	return s.posts.Empty() && s.letters.Empty() && s.orders.Empty()
}

// rouse interrupts the sleep of the thread, if it sleeps: one write however many letters come.
func (s *Scheduler) rouse() {
	if s.trace != nil && s.trace.RemoteEvent != nil {
		s.trace.RemoteEvent(s)
	}
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.idler.Load().Interrupt()
	}
}

// room is where plain goroutines wait for a place in the inbox.
type room struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting atomic.Int32
}

func (r *room) init() { r.changed.L = &r.mu }

// await calls try until it is done. announce is called after whatever may let it succeed: the waiting
// one counts itself before it tries, the announcing one looks at the count afterwards, so one of them
// sees the other.
func (r *room) await(try func() (done, ok bool)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	for {
		if done, ok := try(); done {
			return ok
		}
		r.changed.Wait()
	}
}

// announce takes the lock only if somebody waits.
func (r *room) announce() {
	if r.waiting.Load() > 0 {
		r.mu.Lock()
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

// threads are those that are in Run or Step of any scheduler of the process, so that Post knows where
// it must not wait. A set of threads and not of goroutines: a coroutine is another goroutine on the
// same thread.
var threads threadSet

type threadSet struct {
	mu  sync.Mutex
	ids map[uint64]int // how many schedulers deep
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
