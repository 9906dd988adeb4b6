package act

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/thread"
)

// Run takes turns until nothing keeps it from returning, or a shutdown ends it. A task keeps Run from returning; so do an
// installed demon (see Install and Attach), a posted function, and work without a task, such as sending the last bytes of
// a connection. Run returns nil if nothing is left, and a *shutdown.Cut if a shutdown left something; after any other
// error the scheduler cannot be used any more. The goroutine is locked to its thread while it runs.
func (s *Scheduler) Run() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.exit()
	s.guardedRounds(math.MaxInt, true)
	return s.conclude()
}

// Step takes at most n turns, of tasks and demons, without blocking, and returns how many it took: fewer than n only if
// nothing more is ready, at least until NextDeadline. It may stop inside a round; the next Step goes on there. When a
// shutdown has ended, it returns the error that Run would. It is for tests and simulations.
func (s *Scheduler) Step(n int) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.exit()
	taken := s.guardedRounds(n, false)
	if s.over() {
		if s.order != nil {
			return taken, s.conclude()
		}
		s.endDraining() // of an announced shutdown: nothing is left, so there is no pass in which its timer could fire
	}
	return taken, s.broken
}

// Finished reports whether nothing is left that keeps [Scheduler.Run] from returning. It is for callers of Step, on their
// goroutine.
func (s *Scheduler) Finished() bool {
	s.touch()
	return s.live+s.installed+s.held == s.exhaustedCount && s.nothingCame()
}

// guardedRounds turns a panic outside of turns and posted functions, as in a callback of CallAt, an Idler or a Trace, into
// an error: the scheduler cannot know what was left half done.
func (s *Scheduler) guardedRounds(n int, sleep bool) (taken int) {
	if p := s.guard(func() { taken = s.rounds(n, sleep) }); p != nil {
		s.broken = fmt.Errorf("act: the scheduler broke down: %w\n%s", p, p.Stack)
	}
	return taken
}

// rounds is the loop of the scheduler: rounds of turns, and a pass when nothing is ready or s.turns turns were taken. A
// round gives each task that was ready at its start one turn; what becomes ready in it waits for the next. A pass may come
// inside a long round, which then goes on.
//
//	round: A B C ─ … ─ Z │ round: B C Z │ nothing ready
//	          ╰ 64 turns: pass          ╰ pass: posts, timers, demons, poll or sleep
func (s *Scheduler) rounds(n int, sleep bool) (taken int) {
	for taken < n {
		s.obey()
		if s.over() {
			break
		}
		if !s.passing {
			k := s.take(&s.ready, min(n-taken, s.turns-s.sincePass))
			taken, s.sincePass = taken+k, s.sincePass+k
			if taken == n || s.sincePass < s.turns && !s.ready.empty() {
				continue // n is reached, or a panic or a shutdown cut it short
			}
			s.beginPass()
		}
		taken += s.take(&s.demonic, n-taken)
		if s.passing = !s.demonic.empty(); s.passing {
			continue
		}
		s.endPass(sleep)
		s.tellLast()
		if !sleep && !s.anyReady() {
			break
		}
	}
	return taken
}

// take takes at most n turns from q: of tasks, round after round, or of the demons of one pass. The rounds need no
// mark: a task that becomes ready goes to the end of the queue, after all that were ready before.
func (s *Scheduler) take(q *queue, n int) (taken int) {
	defer s.rescue(&taken)
	for taken < n {
		pending := s.orderPending.Load() // one load a turn for all that has to do with shutdown
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

// turn calls the action once and follows its Directive.
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
	if d == Yield && t.flags&offloading == 0 && s.trace == nil && s.err == nil { // the most frequent case
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
		panic("act: an action returned " + d.String() + ", which is not a valid Directive: return Yield, Wait, Async, Done or Failed")
	}
	if s.err != nil {
		s.err = nil
	}
}

const (
	// passTime bounds how long a pass takes in events, posted functions and timers.
	passTime = time.Millisecond
	// readEvery is how many functions run between two readings of the clock, while they are short: a reading costs a
	// quarter of what it costs to post and call a function that does nothing.
	readEvery = 16
	// readFirst is after how many functions the clock is read for the first time in a pass.
	readFirst = 4
)

// beginPass takes in what came from outside and what is due, and queues the demons that are ready.
func (s *Scheduler) beginPass() {
	s.sincePass = 0
	s.counts.passes++
	s.now = s.clock.Monotonic()
	if s.trace != nil && s.trace.Pass != nil {
		s.trace.Pass(s)
	}
	if s.group.skipPass(s) {
		return
	}
	s.group.activate(s)
	s.takeIn()
	s.demonic, s.demons = s.demons, queue{}
}

// takeIn takes in remote events, posted functions and timers: each kind until there are no more in this pass. When the time is
// up the next pass begins with the next kind, so that each has all of the time in one of three passes.
func (s *Scheduler) takeIn() {
	s.read, s.unread, s.stride = s.now, 0, min(s.stride, readFirst)
	for range 3 {
		inTime := true
		switch s.kind {
		case 0:
			inTime = s.handleEvents()
		case 1:
			inTime = s.runPosts()
		case 2:
			inTime = s.fireTimers()
		}
		if s.kind = (s.kind + 1) % 3; !inTime {
			return
		}
	}
	s.kind = 0
}

// timeUp reports, after a function, whether the time of the pass is up. While functions are short it reads the clock after
// the fourth, and then less often, down to every 16th; once some have taken long, after each.
func (s *Scheduler) timeUp() bool {
	if s.unread++; s.unread < s.stride {
		return false
	}
	now := s.clock.Monotonic()
	if s.stride = min(2*s.stride, readEvery); now-s.read > passTime/readEvery {
		s.stride = 1
	}
	s.read, s.unread = now, 0
	return now-s.now >= passTime
}

// endPass polls the operating system, or sleeps until it reports something: exactly once a pass. It is the only place
// where the thread may block.
func (s *Scheduler) endPass(sleep bool) {
	if len(s.passEnds) > 0 {
		s.callPassEnds()
		s.handleEvents() // on one CPU, what they have started has often ended by now
	}
	s.tellLast()
	atMost := time.Duration(0)
	if sleep && !s.anyReady() {
		if when, ok := s.nextDue(); ok {
			atMost = max(0, when-s.clock.Monotonic()) // read again: the pass may have taken long
		} else {
			atMost = -1
		}
	}
	if atMost == 0 {
		s.idle(0)
		return
	}
	s.asleep.Store(true) // from here on what comes into the inbox interrupts the sleep
	// If asleep cannot be taken back, another goroutine has interrupted already, which ends this sleep at once.
	if (!s.nothingCame() || s.over()) && s.asleep.CompareAndSwap(true, false) {
		atMost = 0 // but poll: a flood of posts must not keep out events of the operating system
	}
	s.idle(atMost)
	s.asleep.Store(false)
	s.now = s.clock.Monotonic()  // the turns to come must not see the time before the sleep
	if !s.remoteEvents.Empty() { // what has ended the sleep has its turn without a further poll
		s.group.activate(s)
		s.read = s.now
		s.handleEvents()
	}
}

// callPassEnds calls what internals.AtPassEnd has collected.
func (s *Scheduler) callPassEnds() {
	for i, f := range s.passEnds {
		s.passEnds[i] = nil
		f()
	}
	s.passEnds = s.passEnds[:0]
}

func (s *Scheduler) idle(atMost time.Duration) {
	if atMost != 0 {
		if s.anyReady() || !s.demonic.empty() || s.running != nil {
			panic("act: about to sleep while something is runnable; this is a bug of act")
		}
		s.breathe()
	}
	if s.trace != nil && s.trace.Idle != nil {
		s.trace.Idle(s, atMost)
	}
	s.idler.Load().Idle(atMost)
}

// breathe calls Gosched now and then while the thread sleeps often: two thread switches, 110 times a second at most. The
// runtime's monitor takes a processor away that has run one goroutine for 10 ms, if it finds it in a system call, and then
// checks every 20 µs for a while. That cost 4 % of an echo server.
func (s *Scheduler) breathe() {
	if s.sleeps++; s.sleeps >= 4 && s.now-s.breathed >= 9*time.Millisecond {
		s.sleeps, s.breathed = 0, s.now
		runtime.Gosched()
	}
}

// anyReady reports whether a task or demon is ready.
func (s *Scheduler) anyReady() bool { return !s.ready.empty() || !s.demons.empty() }

// over reports whether Run is to return: nothing is left, or a bound of the shutdown is reached.
func (s *Scheduler) over() bool {
	if s.broken != nil || s.termsMet() {
		return true
	}
	return s.Finished() && s.group.probe(s)
}

// begin enters Run or Step.
func (s *Scheduler) begin() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.broken != nil:
		return s.broken
	case s.inside:
		return errRunning
	}
	runtime.LockOSThread()
	if err := s.rightThread(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	s.touch()
	s.inside = true
	s.at.Store(s.thread)
	threads.add(s.thread, 1)
	s.now = s.clock.Monotonic()
	return nil
}

// exit leaves Run or Step, even after a panic or Goexit.
func (s *Scheduler) exit() {
	s.callPassEnds()
	if s.broken != nil {
		if len(s.tied) > 0 { // this thread may end, and they could not be dropped on another
			s.cut = s.left()
			s.dropAll()
		}
		s.endDraining()
		eachLocal(s, facts.Leaver.Leave)
	}
	s.tied = slices.DeleteFunc(s.tied, tied.Untie)
	s.inside = false
	s.at.Store(0)
	threads.add(s.thread, -1)
	runtime.UnlockOSThread()
}

// rightThread records the present thread, unless something lives on another one.
func (s *Scheduler) rightThread() error {
	id := thread.ID()
	if len(s.tied) > 0 && id != s.thread {
		return errWrongThread
	}
	s.thread = id
	return nil
}
