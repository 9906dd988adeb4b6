package act_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// A schedule is a string: a letter for each turn, tasks in capitals, demons in small letters, and
// | where a pass begins if the row asks for it.
func TestSchedules(t *testing.T) {
	// threeTasks are the tasks of the classic example, for the test to spawn.
	threeTasks := func(h *history, spawn func(act.Action), between act.Directive) {
		spawn(h.script("A", 2, between))
		spawn(h.script("B", 3, between))
		spawn(h.script("C", 5, between))
	}
	threeWaiters := func(h *history, m *monitor, spawn func(act.Action)) {
		spawn(h.waiter("A", 2, m))
		spawn(h.waiter("B", 3, m))
		spawn(h.waiter("C", 5, m))
	}
	// service supplies in its only turn.
	service := func(h *history, supply func(spawn func(act.Action))) act.Demon {
		return &demon{act: func(t *act.Task) act.Directive {
			supply(t.Scheduler().Spawn)
			return h.note("S", act.Done)
		}}
	}
	for _, row := range []struct {
		name    string
		turns   int // Config.Turns
		passes  bool
		program func(s *act.Scheduler, h *history)
		want    string
	}{
		{name: "three tasks of 2, 3 and 5 turns that yield",
			program: func(s *act.Scheduler, h *history) { threeTasks(h, s.Spawn, act.Yield) },
			want:    "ABCABCBCCC"},
		{name: "three tasks of 2, 3 and 5 turns that wait with one monitor",
			program: func(s *act.Scheduler, h *history) { threeWaiters(h, attach(s), s.Spawn) },
			want:    "ABCABCBCCC"},
		{name: "the same, supplied by a service, that wait with one monitor",
			program: func(s *act.Scheduler, h *history) {
				m := attach(s)
				s.Install(service(h, func(spawn func(act.Action)) { threeWaiters(h, m, spawn) }))
			},
			want: "SABCABCBCCC"},
		{name: "a task that yields goes behind what was spawned in the round",
			program: func(s *act.Scheduler, h *history) {
				twice := h.script("A", 2, act.Yield)
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					d := twice(t)
					if d == act.Yield {
						s.Spawn(h.script("X", 1, act.Yield))
					}
					return d
				}))
				s.Spawn(h.script("B", 2, act.Yield))
			},
			want: "ABXAB"},
		{name: "what is woken in a round waits for the next",
			program: func(s *act.Scheduler, h *history) {
				var ofA act.Waker
				a := h.script("A", 2, act.Wait)
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					ofA = t.Waker()
					return a(t)
				}))
				b := h.script("B", 2, act.Yield)
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					ofA.Wake()
					return b(t)
				}))
				s.Spawn(h.script("C", 2, act.Yield))
			},
			want: "ABCABC"},
		{name: "demons alone take turns until they make tasks",
			program: func(s *act.Scheduler, h *history) {
				d := h.script("d", 3, act.Yield)
				s.Install(&demon{act: func(t *act.Task) act.Directive {
					verdict := d(t)
					if verdict == act.Done {
						s.Spawn(h.script("A", 2, act.Yield))
					}
					return verdict
				}})
				s.Install(&demon{act: h.script("e", 4, act.Yield)})
			},
			want: "dededeAAe"},
		{name: "a pass comes when nothing is ready, and after so many turns", turns: 4, passes: true,
			program: func(s *act.Scheduler, h *history) {
				s.Spawn(h.script("A", 6, act.Yield))
				s.Install(&demon{act: h.script("d", 3, act.Yield)})
			},
			want: "AAAA|dAA|d|d"},
		{name: "a pass comes inside a long round, which then goes on", turns: 2, passes: true,
			program: func(s *act.Scheduler, h *history) {
				for _, letter := range strings.Split("ABCDE", "") {
					s.Spawn(h.script(letter, 2, act.Yield))
				}
				s.Install(&demon{act: h.script("d", 2, act.Yield)})
			},
			want: "AB|dCD|dEA|BC|DE|"},
		{name: "what a pass makes ready goes behind the rest of the round", turns: 2, passes: true,
			program: func(s *act.Scheduler, h *history) {
				for _, letter := range strings.Split("ABC", "") {
					s.Spawn(h.script(letter, 2, act.Yield))
				}
				s.Install(&demon{act: func(*act.Task) act.Directive {
					s.Spawn(h.script("X", 1, act.Yield))
					return h.note("d", act.Done)
				}})
			},
			want: "AB|dCA|BX|C|"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var h history
			trace := &act.Trace{}
			if row.passes {
				trace.Pass = func(*act.Scheduler) { h.WriteString("|") }
			}
			s, logs := newScheduler(t, act.Config{TurnsPerPass: row.turns, Trace: trace})
			row.program(s, &h)
			require.NoError(t, s.Run())
			require.Equal(t, row.want, h.String())
			require.NoError(t, s.Close(), "nothing is left, no service either")
			require.Empty(t, logs.All())
		})
	}
}

func TestAnAttachedDemonDoesNotKeepRunFromReturning(t *testing.T) {
	s, _ := newScheduler(t, act.Config{TurnsPerPass: 2})
	var h history
	s.Attach(&demon{act: func(*act.Task) act.Directive { return h.note("m", act.Yield) }})
	require.NoError(t, s.Run())
	require.Empty(t, h.take(), "alone it is not even called")

	s.Spawn(h.script("A", 5, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "AAmAAmAm", h.take(), "beside a task it has its turns")
	require.NoError(t, s.Run())
	require.Empty(t, h.String(), "and is still there, and still holds nothing")
}

func TestAClosedSchedulerRefuses(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "twice is nothing")
	require.ErrorIs(t, s.Run(), act.ErrClosed)
	_, err := s.Step(1)
	require.ErrorIs(t, err, act.ErrClosed)
	require.PanicsWithValue(t, "act: Spawn or Install on a closed Scheduler", func() { s.Spawn(act.Func(nil)) })
	require.PanicsWithValue(t, "act: Spawn or Install of a nil action", func() { s.Spawn(nil) })
	s.Shutdown(shutdown.Policy{Kind: shutdown.Halt}) // does nothing
}

func TestFunctionsAtTheEndOfAPass(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var said []string
	say := func(word string) { said = append(said, word) }
	begun := false
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if begun {
			say("woken")
			return act.Done
		}
		begun = true
		w := t.Waker().Remote()
		s.Internals().AtPassEnd(func() { say("end"); w() })
		say("turn")
		return act.Wait
	}))
	require.NoError(t, s.Run())
	require.Equal(t, []string{"turn", "end", "woken"}, said)

	s.Spawn(act.Func(func(*act.Task) act.Directive {
		s.Internals().AtPassEnd(func() { say("left") })
		return act.Done
	}))
	_, err := s.Step(1)
	require.NoError(t, err)
	require.Equal(t, "left", said[len(said)-1], "also when Step or Run is left in the middle of a pass")
}

// What ends a sleep from outside has its turn at once: a look at the system would have been part of the sleep.
func TestAWakeUpEndsASleepWithoutAnotherLook(t *testing.T) {
	var said []string
	say := func(what string) { said = append(said, what) }
	var bell act.AtomicWaker
	s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Idle: func(_ *act.Scheduler, atMost time.Duration) {
		if atMost == 0 {
			say("look")
			return
		}
		say("sleep")
		bell.Wake()
	}}})
	turns := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		bell.Set(t.Waker())
		say("turn")
		if turns++; turns == 3 {
			return act.Done
		}
		return act.Wait
	}))
	require.NoError(t, s.Run())
	require.Equal(t, "turn sleep turn sleep turn look", strings.Join(said, " "))
}

// Each function takes 300 µs. Only woken tasks are ready, so a Step is a pass.
func TestAPassTakesInForAMillisecond(t *testing.T) {
	var h history
	var c *clock
	function := func(letter string) {
		h.WriteString(letter)
		c.Pass(300 * time.Microsecond)
	}
	posts := func(s *act.Scheduler, again bool) {
		for range 6 {
			var post func(*act.Scheduler)
			post = func(*act.Scheduler) {
				if function("p"); again {
					_ = s.Post(post)
				}
			}
			require.NoError(t, s.Post(post))
		}
	}
	timers := func(s *act.Scheduler, again bool) {
		for range 6 {
			var tm act.Timer
			var fire expiry
			fire = func() {
				if function("t"); again {
					s.CallAt(&tm, 0, fire)
				}
			}
			s.CallAt(&tm, 0, fire)
		}
	}
	for _, row := range []struct {
		name  string
		bring func(s *act.Scheduler)
		want  string
	}{
		{"posts", func(s *act.Scheduler) { posts(s, false) }, "|pppp|pp"},
		{"timers", func(s *act.Scheduler) { timers(s, false) }, "|tttt|tt"},
		{"remote events", func(s *act.Scheduler) {
			for range 6 {
				s.Spawn(act.Func(func(t *act.Task) act.Directive { t.Waker().Remote()(); return act.Wait }))
			}
		}, "|eeee|ee|eeee|ee"},
		{"posts behind short ones", func(s *act.Scheduler) {
			for range 40 {
				require.NoError(t, s.Post(func(*act.Scheduler) {}))
			}
			_, err := s.Step(1)
			require.NoError(t, err)
			for range 6 {
				require.NoError(t, s.Post(func(*act.Scheduler) { h.WriteString("p"); c.Pass(time.Second) }))
			}
		}, "||pppp|p|p"},
		{"each kind, without an end", func(s *act.Scheduler) { timers(s, true); posts(s, true) }, "|pppp|tttt|pppp"},
	} {
		t.Run(row.name, func(t *testing.T) {
			defer h.Reset()
			s, clock, _ := newVirtual(t, act.Config{Trace: &act.Trace{
				Pass:  func(*act.Scheduler) { h.WriteString("|") },
				Woken: func(*act.Task) { function("e") },
			}})
			c = clock
			s.Internals().KeepRunning(1)
			row.bring(s)
			for range 3 {
				_, err := s.Step(6)
				require.NoError(t, err)
			}
			require.Equal(t, row.want, strings.TrimRight(h.String(), "|"))
		})
	}
}

func TestStepNeverBlocks(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	i := &dreamer{clock: c, insomniac: true}
	s.Internals().SetIdler(i)
	s.Spawn(act.Func(idle))
	var h history
	s.Spawn(h.sleeper("A", 100))
	for _, want := range []int{2, 0, 0} {
		taken, err := s.Step(10)
		require.NoError(t, err)
		require.Equal(t, want, taken)
	}
	require.Positive(t, i.looks)
	require.ErrorContains(t, s.Close(), "dropped 2 tasks")
}

// A loop that embeds a scheduler needs no more than this.
func TestNextDeadlineSaysUntilWhenNothingIsReady(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	var h history
	for i, at := range []time.Duration{10, 20, 20, time.Second} {
		s.Spawn(h.sleeper(string(rune('A'+i)), at))
	}
	var clock act.Timer // of a monitor: it does not keep Run from returning, nor this loop going
	s.CallAt(&clock, time.Minute, expiry(func() {}))
	var sleeps []time.Duration
	for {
		taken, err := s.Step(100)
		require.NoError(t, err)
		if taken > 0 {
			continue
		}
		when, more := s.NextDeadline()
		if !more {
			break
		}
		sleeps = append(sleeps, when-c.Monotonic())
		c.Pass(when - c.Monotonic())
	}
	require.Equal(t, []time.Duration{10, 10, time.Second - 20}, sleeps)
	require.Equal(t, "ABCD", h.String())
	require.NoError(t, s.Close())
}

// spy returns a Trace whose functions all note their names, by reflection: so a new field cannot be forgotten.
func spy(name string, h *history) *act.Trace {
	var tr act.Trace
	v := reflect.ValueOf(&tr).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		v.Field(i).Set(reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value {
			fmt.Fprint(h, name, f.Name, " ")
			return nil
		}))
	}
	return &tr
}

func TestAMultiTraceCallsEveryFunctionOfEveryTraceInOrder(t *testing.T) {
	var h history
	all := reflect.ValueOf(act.MultiTrace(nil, spy("a", &h), &act.Trace{}, spy("b", &h), nil, spy("c", &h))).Elem()
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		t.Run(name, func(t *testing.T) {
			in := make([]reflect.Value, all.Field(i).Type().NumIn())
			for j := range in {
				in[j] = reflect.Zero(all.Field(i).Type().In(j))
			}
			all.Field(i).Call(in)
			require.Equal(t, fmt.Sprintf("a%[1]s b%[1]s c%[1]s ", name), h.take())
		})
	}
}

func TestAMultiTraceAddsNothing(t *testing.T) {
	require.Nil(t, act.MultiTrace())
	require.Nil(t, act.MultiTrace(nil, nil))
	one := &act.Trace{}
	require.Same(t, one, act.MultiTrace(nil, one))
	require.Equal(t, &act.Trace{}, act.MultiTrace(one, one))
}
