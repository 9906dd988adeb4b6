package act_test

import (
	"math/rand"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

func TestATaskThatOnlyAnOrderCanWakeIsReportedOnceAndStays(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var h history
	s.Spawn(h.script("A", 3, act.Wait))
	s.Spawn(h.script("B", 2, act.Yield))
	_, err := s.Step(100)
	require.NoError(t, err)
	require.Equal(t, "ABB", h.String())
	require.Len(t, logs.All(), 1)
	require.Contains(t, logs.All()[0].Message, "only a shutdown can wake")

	for range 3 { // an order makes it ready, and it waits for the next
		s.Shutdown(shutdown.Policy{Kind: shutdown.Halt})
		require.ErrorContains(t, s.Run(), "left 1 task")
	}
	require.Equal(t, "ABB", h.String(), "halted before its turn")
	_, err = s.Step(100)
	require.NoError(t, err)
	require.Equal(t, "ABBA", h.String())
	require.Len(t, logs.All(), 1, "once")
	require.ErrorContains(t, s.Close(), "dropped 1 task")
}

// A task that has armed a timer, asked for a Waker or looked at its order in this very turn waits for something.
func TestATaskThatWaitsForSomethingIsNotReported(t *testing.T) {
	s, _, logs := newVirtual(t, act.Config{})
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if t.Order() != nil {
			return act.Done
		}
		return act.Wait
	}))
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
		s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 3, turns)
	require.Empty(t, logs.All())
}

func TestTheZeroWakersDoNothing(t *testing.T) {
	require.True(t, act.Waker{}.Stale())
	act.Waker{}.Wake()
	act.Waker{}.Remote()()
	var b act.AtomicWaker
	b.Wake()
	b.Set(act.Waker{})
	b.Wake()
}

func TestARemoteMayOutliveItsTaskAndItsScheduler(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	var r func()
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		r = t.Waker().Remote()
		return act.Done
	}))
	require.NoError(t, s.Run())
	r()
	require.NoError(t, s.Run())
	require.NoError(t, s.Close())
	r()
	require.Empty(t, logs.All())
}

// world is the slow obvious twin: one queue of numbers for the whole scheduler. It is told of every spawn, wake-up and
// Directive, and says whose turn must be next.
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
		s, _, _ := newVirtual(t, act.Config{
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
				p.real.Remote()()
				w.remote(p.twin)
				return
			}
			b := w.tasks[p.twin.task]
			require.Equal(t, b.state == "gone" || b.turn != p.twin.turn, p.real.Stale())
			require.Equal(t, b.state == "waiting" && b.turn == p.twin.turn, p.real.Armed())
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
		_ = s.Run() // a Cut with the tasks that still wait
		require.Greater(t, len(w.tasks), 100, "seed %d", seed)
	}
}

func TestAWakeIsNeverLostBetweenTheLookAndTheWait(t *testing.T) {
	const wakers, each = 4, 5000
	s, _ := newScheduler(t, act.Config{})
	var b act.AtomicWaker
	var events atomic.Int64
	taken := int64(0)
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		b.Set(t.Waker())
		if taken += events.Swap(0); taken == wakers*each {
			return act.Done
		}
		return act.Wait
	}))
	for range wakers {
		go func() {
			for i := range each {
				events.Add(1)
				b.Wake()
				if i%8 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
	servertest.InTime(t, func() { require.NoError(t, s.Run()) })
	require.EqualValues(t, wakers*each, taken)
}

func TestAnAtomicWakerWakesOnlyTheLatestTask(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var b act.AtomicWaker
	var h history
	waits := func(letter string) act.Func {
		return func(t *act.Task) act.Directive {
			b.Set(t.Waker())
			return h.note(letter, act.Wait)
		}
	}
	s.Spawn(waits("A"))
	s.Spawn(waits("B"))
	for range 3 {
		_, err := s.Step(10)
		require.NoError(t, err)
		b.Wake()
		b.Wake()
	}
	require.Equal(t, "ABBB", h.String()[:4])
	require.NotContains(t, h.String()[1:], "A")
	s.Shutdown(haltAndDrop)
	requireCut(t, s.Run())
}
