package act_test

import (
	"math/rand"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/shutdown"
)

// When a Waker is fired decides what it does. Each row is a task of at most three turns that answers
// Wait after the first; the demon e fires in the pass.
func TestWhatAWakerDoes(t *testing.T) {
	for _, row := range []struct {
		name    string
		program func(t *act.Task, turn int, later func(func())) act.Directive
		want    string
	}{
		{"fired while it waits: one turn", func(t *act.Task, turn int, later func(func())) act.Directive {
			if turn == 1 {
				later(t.Waker().Wake)
				return act.Wait
			}
			return act.Done
		}, "AA"},
		{"fired three times while it waits: one turn", func(t *act.Task, turn int, later func(func())) act.Directive {
			if turn == 1 {
				w := t.Waker()
				later(w.Wake)
				later(w.Wake)
				later(w.Wake)
				return act.Wait
			}
			return stay(t)
		}, "AA"},
		{"fired within its turn: the Wait returns at once", func(t *act.Task, turn int, _ func(func())) act.Directive {
			if turn == 1 {
				t.Waker().Wake()
				return act.Wait
			}
			return stay(t)
		}, "AA"},
		{"fired three times within its turn: one turn", func(t *act.Task, turn int, _ func(func())) act.Directive {
			if turn == 1 {
				for range 3 {
					t.Waker().Wake()
				}
				return act.Wait
			}
			return stay(t)
		}, "AA"},
		{"fired within its turn and later: one turn", func(t *act.Task, turn int, later func(func())) act.Directive {
			if turn == 1 {
				t.Waker().Wake()
				later(t.Waker().Wake)
				return act.Wait
			}
			return stay(t)
		}, "AA"},
		{"a permit that no Wait used is gone in the next turn", func(t *act.Task, turn int, _ func(func())) act.Directive {
			if turn == 1 {
				t.Waker().Wake()
				return act.Yield
			}
			return stay(t)
		}, "AA"},
		{"fired a turn too late: nothing", func(t *act.Task, turn int, later func(func())) act.Directive {
			switch turn {
			case 1:
				later(t.Waker().Wake) // in the pass that comes after turn 2
				return act.Yield
			case 2:
				return stay(t)
			}
			return act.Done
		}, "AA"},
		{"the other one of two is stale: nothing", func(t *act.Task, turn int, later func(func())) act.Directive {
			if turn == 1 {
				data, timeout := t.Waker(), t.Waker()
				later(func() {
					data.Wake()
					later(timeout.Wake)
				})
				return act.Wait
			}
			return stay(t)
		}, "AA"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, logs := newScheduler(t, act.Config{})
			var h history
			var agenda []func()
			later := func(f func()) { agenda = append(agenda, f) }
			turn := 0
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				turn++
				return h.note("A", row.program(t, turn, later))
			}))
			idle := 0 // passes
			s.Install(&demon{act: func(*act.Task) act.Directive {
				now := agenda
				agenda = nil
				for _, f := range now {
					f()
				}
				if idle++; idle > 5 {
					s.Shutdown(halt)
				}
				return act.Yield
			}})
			_ = s.Run() // a Cut where the task stays
			require.Equal(t, row.want, h.String())
			require.Empty(t, logs.All())
		})
	}
}

// stay waits, and is not woken.
func stay(t *act.Task) act.Directive {
	t.Waker()
	return act.Wait
}

func TestATaskThatWaitsForNothingIsCalledOnceReportedOnceAndStays(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var h history
	s.Spawn(h.script("A", 3, act.Wait))
	s.Spawn(h.script("B", 2, act.Yield))
	_, err := s.Step(100)
	require.NoError(t, err)
	require.Equal(t, "ABB", h.String())
	require.Len(t, logs.All(), 1)
	require.Contains(t, logs.All()[0].Message, "waits for nothing")

	for range 3 { // an order makes it ready, and it waits for nothing again
		s.Shutdown(plain(shutdown.Halt))
		require.ErrorContains(t, s.Run(), "left 1 task")
	}
	require.Equal(t, "ABB", h.String(), "halted before its turn")
	_, err = s.Step(100)
	require.NoError(t, err)
	require.Equal(t, "ABBA", h.String())
	require.Len(t, logs.All(), 1, "once")
	require.ErrorContains(t, s.Close(), "dropped 1 task")
}

// A task that has armed a timer, or asked for a Waker in this very turn, waits for something.
func TestATaskThatWaitsForATimerIsNotReported(t *testing.T) {
	s, _, logs := newVirtual(t, act.Config{})
	var tm act.Timer
	turns := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		switch turns++; turns {
		case 1:
			t.WakeAfter(&tm, 5)
			t.Waker().Wake()
			return act.Wait
		case 2:
			return act.Wait // for the timer of the turn before
		}
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 3, turns)
	require.Empty(t, logs.All())
}

func TestAWakeBeforeWaitIsNeverLost(t *testing.T) {
	tries := tier.Choose(25_000, 25_000, 100_000)
	t.Run("its own", func(t *testing.T) {
		s, _ := newScheduler(t, act.Config{})
		turns := 0
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if turns++; turns > tries {
				return act.Done
			}
			t.Waker().Wake()
			return act.Wait
		}))
		inTime(t, func() { require.NoError(t, s.Run()) })
		require.Equal(t, tries+1, turns)
	})
	t.Run("another goroutine's", func(t *testing.T) {
		s, _ := newScheduler(t, act.Config{})
		const tasks = 8
		var desks [tasks]atomic.Pointer[act.RemoteWaker] // taken and fired at any moment of the turn or after it
		var total atomic.Int64
		for i := range tasks {
			left := tries / tasks
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				total.Add(1)
				if left--; left < 0 {
					return act.Done
				}
				r := t.Waker().Remote()
				desks[i].Store(&r)
				for range left % 64 * 8 { // so that the shot comes before, in, and after the Wait
					_ = desks[i].Load()
				}
				return act.Wait
			}))
		}
		stop := make(chan struct{})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				fired := false
				for i := range desks {
					if r := desks[i].Swap(nil); r != nil {
						r.Wake()
						fired = true
					}
				}
				select {
				case <-stop:
					return
				default:
				}
				if !fired {
					runtime.Gosched()
				}
			}
		}()
		advances(t, &total, func() { require.NoError(t, s.Run()) })
		close(stop)
		<-stopped
		require.EqualValues(t, tries+tasks, total.Load())
	})
}

func TestTheZeroWakerAndRemoteDoNothing(t *testing.T) {
	act.Waker{}.Wake()
	act.Waker{}.Remote().Wake()
}

func TestARemoteMayOutliveItsTaskAndItsScheduler(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var r act.RemoteWaker
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		r = t.Waker().Remote()
		return act.Done
	}))
	require.NoError(t, s.Run())
	r.Wake()
	require.NoError(t, s.Run())
	require.NoError(t, s.Close())
	r.Wake()
	require.Empty(t, logs.All())
}

// It travels once in a turn of its task, however often it is made.
func TestARemoteThatHasBeenUsedInterruptsNothing(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	i := newParkingIdler(s)
	remotes := make(chan act.RemoteWaker, 2)
	turns := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if turns++; turns == 3 {
			return act.Done
		}
		remotes <- t.Waker().Remote()
		return act.Wait
	}))
	ended := onItsThread(t, s)
	<-i.asleep
	first := <-remotes
	first.Wake()
	<-i.asleep
	require.EqualValues(t, 1, i.interrupts.Load())
	first.Wake()
	first.Wake()
	require.EqualValues(t, 1, i.interrupts.Load())
	(<-remotes).Wake()
	inTime(t, func() { require.NoError(t, <-ended) })
	require.EqualValues(t, 2, i.interrupts.Load())
}

func TestAStaleWakerNeverWakesTheTaskThatReusesItsPlace(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var former *act.Task
	var stale act.Waker
	var remote act.RemoteWaker
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		former, stale, remote = t, t.Waker(), t.Waker().Remote()
		return act.Done
	}))
	require.NoError(t, s.Run())
	entered := 0
	s.Spawn(act.Func(func(task *act.Task) act.Directive {
		require.Same(t, former, task)
		entered++
		stale.Wake() // no permit either
		return stay(task)
	}))
	stale.Wake()
	_, err := s.Step(10)
	require.NoError(t, err)
	stale.Wake()
	remote.Wake()
	_, err = s.Step(10)
	require.NoError(t, err)
	require.Equal(t, 1, entered)
}

// world is the slow obvious twin: one queue of numbers for the whole scheduler. It is told of every
// spawn, wake-up and verdict, and says whose turn must be next.
type world struct {
	t      *testing.T
	queue  []int
	tasks  []*body
	events []int               // slots with a remote wake-up under way, in order
	wanted map[*act.Task]right // by slot: the latest asked for
	due    map[*act.Task]bool
	slots  map[int]*act.Task
}

// right is a Waker as the twin sees it: of this task, in this turn.
type right struct{ task, turn int }

func (r right) less(o right) bool { return r.task < o.task || r.task == o.task && r.turn < o.turn }

type body struct {
	state  string // ready, running, waiting, gone
	turn   int
	permit bool
}

func (w *world) spawn() int {
	w.tasks = append(w.tasks, &body{state: "ready"})
	w.queue = append(w.queue, len(w.tasks)-1)
	return len(w.tasks) - 1
}

func (w *world) begin(id int, slot *act.Task) {
	require.NotEmpty(w.t, w.queue, "task %d has a turn, and nothing is ready", id)
	require.Equal(w.t, w.queue[0], id, "another is next")
	w.queue = w.queue[1:]
	b := w.tasks[id]
	b.state, b.permit = "running", false
	b.turn++
	w.slots[id] = slot
}

func (w *world) end(id int, d act.Directive) {
	b := w.tasks[id]
	switch {
	case d == act.Done:
		b.state = "gone"
	case d == act.Yield, b.permit:
		b.state = "ready"
		w.queue = append(w.queue, id)
	default:
		b.state = "waiting"
	}
}

func (w *world) wake(r right) {
	b := w.tasks[r.task]
	switch {
	case b.turn != r.turn:
	case b.state == "waiting":
		b.state = "ready"
		w.queue = append(w.queue, r.task)
	case b.state == "running":
		b.permit = true
	}
}

// remote asks for a wake-up in the next pass: a slot has one place among the events and remembers the
// latest turn asked for.
func (w *world) remote(r right) {
	slot := w.slots[r.task]
	if old, asked := w.wanted[slot]; asked && !old.less(r) {
		return
	}
	w.wanted[slot] = r
	if !w.due[slot] {
		w.due[slot] = true
		w.events = append(w.events, r.task)
	}
}

func (w *world) pass() {
	for _, task := range w.events {
		slot := w.slots[task]
		w.due[slot] = false
		w.wake(w.wanted[slot])
	}
	w.events = nil
}

// Random tasks spawn, wait, end, and fire any of the wakers of all times, most of them stale, some of
// tasks whose slot another one has. The twin, which reuses nothing, expects the same turns.
func TestWakersAgainstASlowTwin(t *testing.T) {
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		w := &world{t: t, wanted: map[*act.Task]right{}, due: map[*act.Task]bool{}, slots: map[int]*act.Task{}}
		s, _ := newScheduler(t, act.Config{
			TurnsPerPass: 1 + rnd.Intn(20),
			Trace:        &act.Trace{Pass: func(*act.Scheduler) { w.pass() }},
		})
		type pair struct {
			twin right
			real act.Waker
		}
		var pairs []pair
		fire := func() {
			if len(pairs) == 0 {
				return
			}
			p := pairs[len(pairs)-1-min(rnd.Intn(len(pairs)), rnd.Intn(len(pairs)))] // rather late ones
			if rnd.Intn(3) == 0 {
				p.real.Remote().Wake()
				w.remote(p.twin)
				return
			}
			p.real.Wake()
			w.wake(p.twin)
		}
		turns := 0
		var spawn func()
		spawn = func() {
			id := w.spawn()
			s.Spawn(act.Func(func(task *act.Task) act.Directive {
				turns++
				w.begin(id, task)
				for range rnd.Intn(4) {
					switch rnd.Intn(6) {
					case 0:
						if turns < 1500 {
							spawn()
						}
					case 1, 2:
						pairs = append(pairs, pair{right{id, w.tasks[id].turn}, task.Waker()})
					default:
						fire()
					}
				}
				d := []act.Directive{act.Yield, act.Wait, act.Wait, act.Wait, act.Done}[rnd.Intn(5)]
				w.end(id, d)
				return d
			}))
		}
		for range 1 + rnd.Intn(10) {
			spawn()
		}
		s.Install(&demon{act: func(*act.Task) act.Directive {
			for range rnd.Intn(4) {
				fire()
			}
			if turns > 2000 {
				s.Shutdown(halt)
			}
			if turns++; turns < 1500 && rnd.Intn(4) == 0 {
				spawn()
			}
			return act.Yield
		}})
		_ = s.Run() // a Cut with those that still wait
		require.Greater(t, len(w.tasks), 100, "seed %d", seed)
	}
}
