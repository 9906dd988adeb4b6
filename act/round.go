package act

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/daimon-go/daimon/internal/thread"
)

// Run takes turns until no task and no demon is left, or an order ends it. It returns nil after a
// complete end and a *shutdown.Cut when an order left something; any other error means that the
// scheduler is not usable any more. It locks the goroutine to its thread while it runs.
func (s *Scheduler) Run() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.exit()
	s.guardedRounds(math.MaxInt, true)
	return s.conclude()
}

// Step is Run for n turns, of tasks and demons alike, that never blocks: it takes exactly n turns if
// there are so many, may stop inside a round and go on there, and returns how many it took. 0 means
// that nothing is ready, until NextDeadline at least. The error is that of Run, when an order has met
// its terms.
func (s *Scheduler) Step(n int) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.exit()
	taken := s.guardedRounds(n, false)
	if s.order == nil || !s.over() {
		return taken, s.broken
	}
	return taken, s.conclude()
}

// Finished tells whether nothing is left here that holds Run: for who Steps.
func (s *Scheduler) Finished() bool {
	s.touch()
	return s.live+s.installed+s.held == s.exhaustedCount && s.inboxEmpty()
}

// guardedRounds makes an error of a panic outside of turns and posted functions: in a monitor, an
// Idler, a Trace. The scheduler cannot know what such a one has left half done.
func (s *Scheduler) guardedRounds(n int, sleep bool) (taken int) {
	if p := s.guard(func() { taken = s.rounds(n, sleep) }); p != nil {
		s.broken = fmt.Errorf("act: the scheduler broke down: %w\n%s", p, p.Stack)
	}
	return taken
}

// rounds is the scheduler: rounds of turns, and a pass when nothing is ready or s.turns turns were
// taken. A round is one go over what was ready at its start; what becomes ready in it waits for the
// next. A pass may come inside a long round, which then goes on.
//
//	round: A B C ─ … ─ Z │ round: B C Z │ nothing ready
//	          ╰ 64 turns: pass          ╰ pass: posts, timers, demons, look or sleep
func (s *Scheduler) rounds(n int, sleep bool) (taken int) {
	for taken < n {
		s.obey()
		if s.over() {
			break
		}
		if !s.passing {
			k := s.take(&s.ready, min(n-taken, s.turns-s.sincePass))
			taken, s.sincePass = taken+k, s.sincePass+k
			if taken == n || s.sincePass < s.turns && s.tasksReady() {
				continue // n is reached, or a panic or an order cut it short
			}
			s.beginPass()
		}
		taken += s.take(&s.demonic, n-taken)
		if s.passing = !s.demonic.empty(); s.passing {
			continue
		}
		s.endPass(sleep)
		if !sleep && !s.anyReady() {
			break
		}
	}
	return taken
}

// take takes at most n turns from q: of tasks round after round, or of the demons of one pass. Rounds need
// no mark: what becomes ready goes to the end of the queue, and so is behind all that was ready before.
func (s *Scheduler) take(q *queue, n int) (taken int) {
	defer s.rescue(&taken)
	for taken < n {
		pending := s.orderPending.Load() // one look a turn at all that has to do with orders
		if pending && !s.orders.Empty() {
			break
		}
		t := q.pop()
		if t == nil {
			break
		}
		if pending && !s.grantTurn(t) {
			continue
		}
		s.turn(t)
		taken++
	}
	s.running = nil
	return taken
}

// turn calls the action once and does as it says.
func (s *Scheduler) turn(t *Task) {
	t.turn++
	t.state = running
	t.flags &^= permit | attended
	s.running = t
	if s.trace != nil && s.trace.TurnStart != nil {
		s.trace.TurnStart(t)
	}
	d := t.action.Act(t)
	if len(s.ends) > 0 {
		s.endTurn()
	}
	s.ended++
	if d == Yield && t.flags&offloading == 0 && s.trace == nil && s.err == nil { // what most turns come to
		s.enqueue(t)
		return
	}
	if s.trace != nil && s.trace.TurnEnd != nil {
		s.trace.TurnEnd(t, d)
	}
	if (t.flags&offloading != 0) != (d == Async) {
		panic(misplacedAsync(d))
	}
	switch d {
	case Yield:
		s.enqueue(t)
	case Wait:
		s.wait(t)
	case Async:
		s.send(t)
	case Done:
		s.finish(t, nil)
	case Failed:
		s.finish(t, s.failure())
	default:
		panic("act: an action returned " + d.String() + ", which is no verdict: return Yield, Wait, Async, Done or Failed")
	}
	if s.err != nil {
		s.err = nil
	}
}

// beginPass takes in what came from outside and what is due, and lets the demons line up.
func (s *Scheduler) beginPass() {
	s.sincePass = 0
	s.now = s.clock.Monotonic()
	if s.trace != nil && s.trace.Pass != nil {
		s.trace.Pass(s)
	}
	if s.group.idle(s) {
		return
	}
	s.group.busy(s)
	s.openLetters()
	s.runPosts()
	s.fireTimers()
	s.demonic, s.demons = s.demons, queue{}
}

// endPass looks at the outside world, or sleeps until it has something: exactly once a pass. It is the
// only place where the thread may block.
func (s *Scheduler) endPass(sleep bool) {
	atMost := time.Duration(0)
	if sleep && !s.anyReady() {
		atMost = s.untilDue()
	}
	if atMost == 0 {
		s.idle(0)
		return
	}
	s.asleep.Store(true) // from here on whoever leaves something interrupts
	// Taken back, it is a look that nobody interrupts. If somebody was faster, his interrupt is on its way: it
	// ends this sleep at once, as it would had he come a moment later.
	if (!s.inboxEmpty() || s.over()) && s.asleep.CompareAndSwap(true, false) {
		atMost = 0 // but look: a flood of posts must not keep out what the operating system has
	}
	s.idle(atMost)
	s.asleep.Store(false)
	s.now = s.clock.Monotonic() // the turns to come must not take the time before the sleep for the present
}

func (s *Scheduler) idle(atMost time.Duration) {
	if atMost != 0 {
		s.neverIdleWhileRunnable()
		s.breathe()
	}
	if s.trace != nil && s.trace.Idle != nil {
		s.trace.Idle(s, atMost)
	}
	s.idler.Load().Idle(atMost)
}

// breathe reschedules the goroutine now and then while the thread sleeps often. The runtime's monitor
// takes a processor that has run one goroutine for 10 ms away, if it finds it in a system call, as it
// does here half of the time; and having taken one it looks every 20 µs for a while. That cost 4 % of an
// echo server; a Gosched on a locked thread costs two thread switches, 110 times a second at most.
func (s *Scheduler) breathe() {
	if s.sleeps++; s.sleeps >= 4 && s.now-s.breathed >= 9*time.Millisecond {
		s.sleeps, s.breathed = 0, s.now
		runtime.Gosched()
	}
}

// anyReady tells whether a turn could be taken without waiting for anything.
func (s *Scheduler) anyReady() bool { return s.tasksReady() || !s.demons.empty() }

func (s *Scheduler) tasksReady() bool { return !s.ready.empty() }

// untilDue is how long the thread may sleep: until the next deadline, less than 0 for ever, 0 not. The
// pass may have taken its time, so the clock is read again, where a sleep makes up for it.
func (s *Scheduler) untilDue() time.Duration {
	when, ok := s.NextDeadline()
	if !ok {
		return -1
	}
	return max(0, when-s.clock.Monotonic())
}

func (s *Scheduler) neverIdleWhileRunnable() {
	if s.anyReady() || !s.demonic.empty() || s.running != nil {
		panic("act: about to sleep while something is runnable; this is a bug of act")
	}
}

// over tells whether there is nothing more to do here: nothing is left, or an order's terms are met.
func (s *Scheduler) over() bool {
	if s.broken != nil || s.termsMet() {
		return true
	}
	return s.Finished() && s.group.quiet(s)
}

// begin enters Run or Step.
func (s *Scheduler) begin() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.broken != nil:
		return s.broken
	case s.inside:
		return ErrRunning
	}
	runtime.LockOSThread()
	if err := s.rightThread(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	s.touch()
	s.inside = true
	s.at.Store(s.thread)
	threads.enter(s.thread)
	s.now = s.clock.Monotonic()
	return nil
}

// exit leaves Run or Step, also by a panic or Goexit.
func (s *Scheduler) exit() {
	if s.broken != nil && len(s.tied) > 0 { // this thread may be about to end, and nobody could drop them on another
		s.cut = s.census()
		s.dropAll()
	}
	if s.broken != nil {
		s.leave()
	}
	s.untie()
	s.inside = false
	s.at.Store(0)
	threads.leave(s.thread)
	runtime.UnlockOSThread()
}

// rightThread notes the present thread, unless something lives on another one.
func (s *Scheduler) rightThread() error {
	id := thread.ID()
	if len(s.tied) > 0 && id != s.thread {
		return ErrWrongThread
	}
	s.thread = id
	return nil
}
