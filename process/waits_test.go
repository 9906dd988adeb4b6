package process_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/stretchr/testify/require"
)

// lister returns what lists the processes of s.
func lister(t testing.TB, s *act.Scheduler) (found facts.Lister) {
	t.Helper()
	s.Internals().EachLocal(func(v any) {
		if l, ok := v.(facts.Lister); ok {
			found = l
		}
	})
	require.NotNil(t, found)
	return found
}

// listed returns the processes of s, slice of them with each call.
func listed(t testing.TB, s *act.Scheduler, slice int) (all []facts.Process) {
	l := lister(t, s)
	for again, more := true, true; more; again = false {
		n := 0
		more = l.List(again, func(row any) bool {
			all, n = append(all, *row.(*facts.Process)), n+1
			return n < slice
		})
	}
	return all
}

func named(x *traced, name string, o process.Options, h func(p *process.Self[int], m int)) process.Ref[int] {
	o.Name = name
	return process.Spawn(x.sys, process.Handler(h), o)
}

func TestWhatIsSeenOfProcesses(t *testing.T) {
	x := newTraced(t, process.WithBounds(1024, 1, 1))
	sink := func(*process.Self[int], int) {}
	quiet := named(x, "quiet", process.Options{}, sink)
	full := named(x, "full", process.Options{Limit: 2, Reject: true}, sink)
	dead := x.handler(func(p *process.Self[int], _ int) { p.Exit() })
	sender := named(x, "sender", process.Options{}, func(p *process.Self[int], m int) {
		for range m {
			require.NoError(t, quiet.Send(p, m))
		}
	})
	x.step()
	x.send(dead, 1)
	x.step()
	require.ErrorIs(t, dead.Send(x.sys, 1), process.ErrDead)
	x.send(full, 1, 2) // the first goes to where the process takes it, and fills a place
	for range 3 {
		require.ErrorIs(t, full.Send(x.sys, 3), process.ErrFull)
	}
	all := listed(t, x.s, 100)
	require.Len(t, all, 3)
	for i := range all {
		require.Contains(t, all[i].Kind, "TestWhatIsSeenOfProcesses.func")
		all[i].Kind = ""
	}
	require.Equal(t, []facts.Process{
		{ID: quiet.ID(), Name: "quiet", State: "sleeping", Limit: 1024},
		{ID: full.ID(), Name: "full", State: "queued", Mailbox: 2, Limit: 2, Dropped: 3},
		{ID: sender.ID(), Name: "sender", State: "sleeping", Limit: 1024},
	}, all)
	x.step()
	counts := servertest.CountsOf(x.s)
	require.EqualValues(t, 3, counts["processes"])
	require.EqualValues(t, 4, counts["processes_spawned_total"])
	require.EqualValues(t, 1, counts["processes_ended_total"])
	require.EqualValues(t, 3, counts["process_messages_total"])
	require.EqualValues(t, 4, counts["process_messages_dropped_total"])
	require.EqualValues(t, 1, counts["process_dead_letters_total"])
	require.EqualValues(t, 0, counts["processes_queued"])
	x.send(sender, 1)
	x.step()
	require.EqualValues(t, 1, servertest.CountsOf(x.s)["process_handoffs_total"])
}

// Once somebody has asked, turns are timed.
func TestTurnsOfProcessesAreTimedForThoseThatAsk(t *testing.T) {
	x := newTraced(t, process.New())
	slow := named(x, "slow", process.Options{}, func(*process.Self[int], int) { x.clock.Pass(3 * time.Millisecond) })
	turns := func() {
		for range 200 {
			x.send(slow, 1)
			x.step()
		}
	}
	turns()
	require.Zero(t, listed(t, x.s, 1)[0].Turn)
	turns()
	require.Equal(t, 3*time.Millisecond, listed(t, x.s, 1)[0].Turn)
}

// A list in slices has each process that is there all the time, once, while others come and go.
func TestAListInSlicesWhileProcessesEnd(t *testing.T) {
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 0))
		x := newTraced(t, process.New())
		var stay []uint64
		var leave []process.Ref[int]
		for i := range 300 {
			ref := x.handler(func(p *process.Self[int], _ int) { p.Exit() })
			if i%3 == 0 {
				stay = append(stay, ref.ID())
			} else {
				leave = append(leave, ref)
			}
		}
		x.step()
		var seen []uint64
		l := lister(t, x.s)
		for again, more := true, true; more; again = false {
			n := draw.IntN(10)
			more = l.List(again, func(row any) bool {
				seen = append(seen, row.(*facts.Process).ID)
				n--
				return n > 0
			})
			for range draw.IntN(20) {
				if len(leave) > 0 {
					i := draw.IntN(len(leave))
					_ = leave[i].Send(x.sys, 1)
					leave = append(leave[:i], leave[i+1:]...)
				}
			}
			x.step()
		}
		once := map[uint64]int{}
		for _, id := range seen {
			once[id]++
			require.Equal(t, 1, once[id])
		}
		for _, id := range stay {
			require.Equal(t, 1, once[id], "seed %d", seed)
		}
	}
}

func TestWaitsForProcesses(t *testing.T) {
	x := newTraced(t, process.New())
	type question = process.Reply[int]
	deaf := process.Spawn(x.sys, process.Handler(func(*process.Self[question], question) {}),
		process.Options{Name: "deaf", Limit: 1})
	x.step()
	x.s.Spawn(&process.Ask[question, int]{To: deaf, Message: func(r question) question { return r }})
	x.step()
	runner := "a process that has something to do"
	require.Equal(t, []string{runner, "an answer of deaf"}, servertest.Said(x.s))

	// A process of another scheduler's Group would do; here it is full because no turn is taken in between.
	other := process.New()
	there := act.New(act.Config{})
	t.Cleanup(func() { _ = there.Close() })
	require.NoError(t, other.Setup(there))
	full := process.Spawn(other, process.Handler(func(*process.Self[question], question) {}),
		process.Options{Name: "full", Limit: 1})
	require.NoError(t, full.Send(other, question{}))
	x.s.Spawn(&process.Ask[question, int]{To: full, Message: func(r question) question { return r }})
	x.step()
	require.Equal(t, []string{runner, "an answer of deaf", "room in the mailbox of full"}, servertest.Said(x.s))
}

// It counts from the call of After, and not from the beginning of the turn.
func TestATimerIsNeverEarly(t *testing.T) {
	for _, d := range []time.Duration{1, time.Millisecond - 1, time.Minute + 1, 25 * time.Hour} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 2)
			x.later(time.Hour)
			expired := 0
			x.do(x.spawn(process.Options{}), func(p *jobSelf) {
				x.clock.Pass(time.Second) // the turn takes long
				p.After(d, func(*jobSelf) { expired++ })
			})
			x.later(d - 1)
			require.Zero(t, expired)
			x.later(1)
			require.Equal(t, 1, expired)
			x.later(1000 * time.Hour)
			require.Equal(t, 1, expired, "once")
		})
	}
}

func TestTimersThatAreDueAtOnceOrNever(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "turn timer", -1: "turn timer", math.MinInt64: "turn timer", math.MaxInt64: "turn", math.MaxInt64 - 1: "turn",
	} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 1)
			x.later(time.Hour)
			log := ""
			x.do(x.spawn(process.Options{}), func(p *jobSelf) {
				p.After(d, func(*jobSelf) { log += " timer" })
				log += "turn" // the timer sends a message; it calls nothing
			})
			x.later(1000 * time.Hour)
			require.Equal(t, want, log)
		})
	}
}

func TestCancelOfATimer(t *testing.T) {
	for _, there := range []int{0, 1} {
		t.Run([]string{"where it was set", "on the other scheduler"}[there], func(t *testing.T) {
			x := newStepped(t, 2)
			ref := x.spawn(process.Options{})
			var a, expires process.Operation
			expired := 0
			x.on(0, ref, func(p *jobSelf) {
				a = p.After(time.Second, func(*jobSelf) { t.Error("it was stopped") })
				expires = p.After(time.Second, func(*jobSelf) { expired++ })
			})
			x.on(there, ref, func(*jobSelf) {
				require.True(t, a.Cancel())
				require.False(t, a.Cancel(), "a second call")
			})
			x.later(time.Second)
			require.Equal(t, 1, expired)
			x.on(there, ref, func(*jobSelf) { require.False(t, expires.Cancel(), "it has expired") })
		})
	}
}
