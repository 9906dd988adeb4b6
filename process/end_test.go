package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

func TestTheValueOfExitArrivesBeforeTheNotice(t *testing.T) {
	for _, schedulers := range []int{1, 2} {
		x := newStepped(t, schedulers)
		log := []string{}
		note := func(text string) job { return func(*jobSelf) { log = append(log, text) } }
		parent := x.spawn(process.Options{})
		child := x.spawn(process.Options{})
		x.do(parent, func(p *jobSelf) {
			process.Watch(p, child, func(n process.Notice) job { return note(n.Reason.String()) })
		})
		x.do(child, func(p *jobSelf) {
			require.NoError(t, parent.Send(p, note("a message")))
			process.Exit(p, parent, note("a value"))
			require.NoError(t, parent.Send(p, note("after the value")))
		})
		require.Equal(t, []string{"a message", "a value", "after the value", "normal"}, log)
	}
}

func TestNoBoundRefusesTheValueOfExit(t *testing.T) {
	for _, full := range []process.Overflow{process.Block, process.Drop, process.Reject} {
		x := newStepped(t, 1)
		log := ""
		note := func(text string) job { return func(*jobSelf) { log += text } }
		parent := x.spawn(process.Options{Limit: 1, Overflow: full})
		child := x.spawn(process.Options{})
		require.NoError(t, child.Send(x.sys, func(p *jobSelf) {
			require.NoError(t, parent.Send(x.sys, note("full, ")))
			process.Exit(p, parent, note("value"))
		}))
		x.all()
		require.Equal(t, "full, value", log)
		require.EqualValues(t, 1, x.sys.Stats().Ended)
		require.Zero(t, x.sys.Stats().Dropped)
	}
}

func TestTheValueOfExitForAnEndedProcessIsCounted(t *testing.T) {
	x := newStepped(t, 1)
	parent := x.spawn(process.Options{})
	x.do(parent, exits)
	x.do(x.spawn(process.Options{}), func(p *jobSelf) { process.Exit(p, parent, exits) })
	require.EqualValues(t, 1, x.sys.Stats().Dropped)
	require.EqualValues(t, 2, x.sys.Stats().Ended)
	x.do(x.spawn(process.Options{}), func(p *jobSelf) { process.Exit(p, process.Ref[job]{}, exits) })
	require.EqualValues(t, 3, x.sys.Stats().Ended, "a value for the zero Ref is not counted")
}

func TestTheFirstExitCounts(t *testing.T) {
	x := newStepped(t, 1)
	log := ""
	note := func(text string) job { return func(*jobSelf) { log += text } }
	parent := x.spawn(process.Options{})
	child := x.spawn(process.Options{})
	h := x.watcher(child)
	x.do(child, func(p *jobSelf) {
		process.Exit(p, parent, note("first"))
		process.Exit(p, parent, note("second"))
		p.Exit()
		_, ok := p.Receive()
		require.False(t, ok)
	})
	require.Equal(t, "first", log)
	require.Equal(t, []process.Reason{process.Normal}, h.reasons())
}

func TestReasons(t *testing.T) {
	verdict := func(d act.Directive) process.Action[job] {
		return process.Func(func(*jobSelf) act.Directive { return d })
	}
	turn := func(f func(p *jobSelf)) process.Action[job] {
		return process.Func(func(p *jobSelf) act.Directive { f(p); return act.Wait })
	}
	const verdicts = ": return Yield, Wait, Done or Failed"
	for _, row := range []struct {
		name   string
		action process.Action[job]
		want   process.Reason
		text   string // of the Notice's error
	}{
		{"Done", verdict(act.Done), process.Normal, ""},
		{"Exit", turn(exits), process.Normal, ""},
		{"Exit, then Fail", turn(func(p *jobSelf) { p.Exit(); p.Fail(errFailed) }), process.Failed, "it has failed"},
		{"Fail, then Exit", turn(func(p *jobSelf) { p.Fail(errFailed); p.Exit() }), process.Failed, "it has failed"},
		{"Fail in a Handler", turn(fails), process.Failed, "it has failed"},
		{"Fail, returned", process.Func(func(p *jobSelf) act.Directive { return p.Fail(errFailed) }), process.Failed, "it has failed"},
		{"Failed without Fail", verdict(act.Failed), process.Failed, "process: failed without saying why"},
		{"a panic", turn(panics), process.Panicked, "panic: burst"},
		{"a panic with an error", turn(func(*jobSelf) { panic(errFailed) }), process.Panicked, "panic: it has failed"},
		{"a panic after Exit", turn(func(p *jobSelf) { p.Exit(); panics(p) }), process.Panicked, "panic: burst"},
		{"a panic with nil", turn(func(*jobSelf) { panic(error(nil)) }), process.Panicked, "panic: panic called with nil argument"},
		{"no verdict", verdict(0), process.Panicked, "panic: process: an action returned Directive(0)" + verdicts},
		{"Async", verdict(act.Async), process.Panicked, "panic: process: an action returned Async" + verdicts},
		{"Fail without an error", turn(func(p *jobSelf) { p.Fail(nil) }), process.Panicked, "panic: process: Fail without an error"},
		{"Kill of itself", turn(func(p *jobSelf) { p.Kill() }), process.Killed, ""},
		{"Kill of itself, then Exit", turn(func(p *jobSelf) { p.Kill(); p.Exit() }), process.Normal, ""},
		{"an unknown Directive", verdict(77), process.Panicked, "panic: process: an action returned " + act.Directive(77).String() + verdicts},
		{"Exit, and Yield", process.Func(func(p *jobSelf) act.Directive { p.Exit(); return act.Yield }), process.Normal, ""},
		{"Fail, and Done", process.Func(func(p *jobSelf) act.Directive { p.Fail(errFailed); return act.Done }), process.Failed, "it has failed"},
		{"Kill of itself, and Yield", process.Func(func(p *jobSelf) act.Directive { p.Kill(); return act.Yield }), process.Killed, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 1)
			closed, turns := 0, 0
			action := process.Func(func(p *jobSelf) act.Directive { turns++; return row.action.Act(p) })
			ref := process.Spawn(x.sys, &closingProcess[job]{action, func() error { closed++; return nil }}, process.Options{})
			future := process.Ended(ref)
			w := x.watcher(ref)
			n := onlyOne(t, w.heard())
			require.Equal(t, process.AnyRef(ref), n.Of)
			require.Equal(t, row.want, n.Reason)
			if row.text == "" {
				require.NoError(t, n.Err)
			} else {
				require.ErrorContains(t, n.Err, row.text)
			}
			again, err := future.Value()
			require.NoError(t, err)
			require.Equal(t, n, again)
			require.Equal(t, []int{1, 1}, []int{turns, closed})
			require.ErrorIs(t, ref.Send(x.sys, exits), process.ErrDead)
			require.False(t, ref.Kill())
			stats := x.sys.Stats()
			require.EqualValues(t, 1, stats.Ended)
			require.EqualValues(t, 1, stats.Dropped)
		})
	}
}

func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	x := newStepped(t, 1)
	ref := x.spawn(process.Options{Name: "bob"})
	w := x.watcher(ref)
	x.do(ref, panics)
	var p *act.Panic
	require.ErrorAs(t, onlyOne(t, w.heard()).Err, &p)
	require.Equal(t, "burst", p.Value)
	require.Contains(t, string(p.Stack), "process_test.panics")
	entry := onlyOne(t, x.logs.All())
	require.Equal(t, "a process has panicked", entry.Message)
	require.Equal(t, zapcore.ErrorLevel, entry.Level)
	require.Equal(t, "bob", entry.ContextMap()["process"])
	require.Equal(t, "burst", entry.ContextMap()["value"])
	require.Contains(t, fmt.Sprintf("%s", entry.ContextMap()["stack"]), "process_test.panics")
}

func TestReasonString(t *testing.T) {
	all := []string{}
	for r := process.Normal; r <= process.Stopped+1; r++ {
		all = append(all, r.String())
	}
	require.Equal(t, "normal failed panic killed linked stopped Reason(7)", strings.Join(all, " "))
}

func TestKillOfASleepingProcess(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	w := x.watcher(ref)
	require.True(t, ref.Kill())
	require.False(t, ref.Kill(), "a second call")
	x.all()
	require.Equal(t, []process.Reason{process.Killed}, w.reasons())
	require.False(t, ref.Kill(), "the process has ended")
}

func TestKillOfAQueuedProcessDropsItsMessages(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	w := x.watcher(ref)
	for range 5 {
		require.NoError(t, ref.Send(x.sys, func(*jobSelf) { t.Error("it was killed before that") }))
	}
	require.True(t, ref.Kill())
	x.all()
	require.Equal(t, []process.Reason{process.Killed}, w.reasons())
	require.EqualValues(t, 5, x.sys.Stats().Dropped)
}

func TestKillBeforeTheFirstTurn(t *testing.T) {
	x := newStepped(t, 1)
	closed := 0
	ref := process.Spawn(x.sys, &closingProcess[job]{process.Func[job](func(*jobSelf) act.Directive {
		t.Error("it was killed before that")
		return act.Done
	}), func() error { closed++; return nil }}, process.Options{})
	require.True(t, ref.Kill())
	w := x.watcher(ref)
	require.Equal(t, []process.Reason{process.Killed}, w.reasons())
	require.Equal(t, 1, closed)
}

func TestKillDuringALongTurn(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	ref := x.spawn(process.Options{})
	begun, killed, finished := make(chan bool), make(chan bool), atomic.Bool{}
	require.NoError(t, ref.Send(x.sys, func(*jobSelf) {
		close(begun)
		<-killed
		finished.Store(true)
	}))
	require.NoError(t, ref.Send(x.sys, func(p *jobSelf) {})) // the turn may or may not receive it
	servertest.Receive(t, begun)
	require.True(t, ref.Kill())
	require.False(t, ref.Kill())
	close(killed)
	require.Equal(t, process.Notice{Of: ref, Reason: process.Killed}, x.ended(ref))
	require.True(t, finished.Load(), "a kill does not end a turn")
	x.close()
}

// A Goexit ends its scheduler, and Run with an error. If a process has called it, the other schedulers end at once; if
// a task has, they end within the bound of the order that they get.
func TestRuntimeGoexitEndsRun(t *testing.T) {
	for _, where := range []string{"a process", "a task"} {
		for _, schedulers := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d", where, schedulers), func(t *testing.T) {
				patience := 10 * time.Second // of the order
				if where == "a task" {
					patience = 100 * time.Millisecond
				}
				sys := process.New(process.Config{})
				g := act.NewGroup(act.Config{Schedulers: schedulers, Shutdown: shutdown.Policy{Time: patience, Drop: true}})
				var ref process.Ref[job]
				closed := 0
				begun := time.Now()
				err := runToEnd(t, g, sys.Setup, func(s *act.Scheduler) error {
					if s.Index() > 0 {
						return nil
					}
					ref = process.Spawn(sys, &closingProcess[job]{runJobs, func() error { closed++; return nil }}, process.Options{})
					if where == "a process" {
						return ref.Send(sys, func(*jobSelf) { runtime.Goexit() })
					}
					s.Spawn(act.Func(func(*act.Task) act.Directive { runtime.Goexit(); return act.Done }))
					return nil
				})
				require.ErrorIs(t, err, act.ErrGoexit)
				require.Less(t, time.Since(begun), 8*time.Second)
				_ = g.Close()
				require.Equal(t, 1, closed)
				n, err := process.Ended(ref).Value()
				require.NoError(t, err)
				require.Equal(t, process.Stopped, n.Reason)
			})
		}
	}
}

// closingProcess is an Action with a Close method.
type closingProcess[M any] struct {
	process.Action[M]
	close func() error
}

func (c *closingProcess[M]) Close() error { return c.close() }

// However a process ends, its action is closed once: after the last turn, and before any observer is told.
func TestTheActionIsClosedOnce(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(x *stepped, ref process.Ref[job])
		want process.Reason
	}{
		{"Exit", func(x *stepped, ref process.Ref[job]) { _ = ref.Send(x.sys, exits) }, process.Normal},
		{"Fail", func(x *stepped, ref process.Ref[job]) { _ = ref.Send(x.sys, fails) }, process.Failed},
		{"panic", func(x *stepped, ref process.Ref[job]) { _ = ref.Send(x.sys, panics) }, process.Panicked},
		{"Kill", func(_ *stepped, ref process.Ref[job]) { ref.Kill() }, process.Killed},
		{"link", func(x *stepped, ref process.Ref[job]) {
			other := x.spawn(process.Options{})
			process.Link(ref, other, false)
			other.Kill()
		}, process.Linked},
		{"a drop", func(x *stepped, _ process.Ref[job]) {
			x.g.Shutdown(servertest.Cut)
			for _, s := range x.g.Schedulers() {
				_, _ = s.Step(1)
			}
		}, process.Stopped},
		{"Close of the Group", func(x *stepped, _ process.Ref[job]) { _ = x.g.Close() }, process.Stopped},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 2)
			log := []string{}
			ref := process.Spawn(x.sys, &closingProcess[job]{runJobs, func() error {
				log = append(log, "closed")
				return nil
			}}, process.Options{})
			ended := process.Ended(ref)
			ended.Handle(func(n process.Notice, _ error) { log = append(log, n.Reason.String()) })
			x.all()
			row.end(x, ref)
			if row.want != process.Stopped {
				x.all()
				require.Equal(t, []string{"closed", row.want.String()}, log)
			}
			n, err := ended.Value()
			require.NoError(t, err)
			require.Equal(t, row.want, n.Reason)
			_ = x.g.Close()
			require.Equal(t, "closed", log[0])
			require.NotContains(t, log[1:], "closed")
		})
	}
}

func TestACloseThatFailsOrPanicsIsLogged(t *testing.T) {
	for _, row := range []struct {
		name    string
		close   func() error
		message string
		key     string
	}{
		{"fails", func() error { return errFailed }, "closing a process failed", "error"},
		{"panics", func() error { panic(errFailed) }, "the end of a process has panicked", "value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 1)
			ref := process.Spawn(x.sys, &closingProcess[job]{runJobs, row.close}, process.Options{Name: "bob"})
			other := x.spawn(process.Options{})
			process.Link(ref, other, true)
			h := x.watcher(ref, other)
			x.do(ref, exits)
			require.Equal(t, []process.Reason{process.Normal, process.Linked}, h.reasons())
			entry := onlyOne(t, x.logs.All())
			require.Equal(t, row.message, entry.Message)
			require.Equal(t, "bob", entry.ContextMap()["process"])
			require.Equal(t, "it has failed", entry.ContextMap()[row.key])
		})
	}
}

func TestACloseThatPanicsDoesNotKeepOthersOpen(t *testing.T) {
	x := newStepped(t, 2)
	closed := 0
	for i := range 10 {
		process.Spawn(x.sys, &closingProcess[job]{runJobs, func() error {
			if closed++; i%2 == 0 {
				panic("burst")
			}
			return nil
		}}, process.Options{})
	}
	x.all()
	require.NoError(t, x.g.Close())
	require.Equal(t, 10, closed)
	require.Zero(t, x.sys.Stats().Alive)
}

func TestAPanicEndsTheProgramWithCrash(t *testing.T) {
	const variable = "DAIMON_PROCESS_CRASH"
	if os.Getenv(variable) != "" {
		sys := process.New(process.Config{})
		_ = act.Run(t.Context(), act.Config{Schedulers: 1, Crash: true}, sys.Setup, func(*act.Scheduler) error {
			process.Spawn(sys, process.Func[int](func(*process.Self[int]) act.Directive { return explode("boom") }), process.Options{})
			return nil
		})
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "panic: boom")
	require.Contains(t, string(out), "process_test.explode")
	require.NotContains(t, string(out), "a process has panicked")
}

func explode(why string) act.Directive { panic(why) }

func TestEnded(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	before := process.Ended(ref)
	require.Same(t, before, process.Ended(ref), "each call returns the same future")
	x.all()
	require.False(t, before.Resolved())
	x.do(ref, fails)
	want := process.Notice{Of: ref, Reason: process.Failed, Err: errFailed}
	for _, f := range []interface {
		Value() (process.Notice, error)
	}{before, process.Ended(ref)} {
		n, err := f.Value()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
}

func TestRefsIdentifyProcesses(t *testing.T) {
	x := newStepped(t, 2)
	seen := map[process.Ref[job]]int{}
	parties := map[process.AnyRef]int{}
	ids := map[uint64]bool{}
	for i := range 200 {
		ref := x.spawn(process.Options{})
		require.Zero(t, seen[ref], "also of those that have ended")
		seen[ref], parties[ref] = i, i
		require.NotZero(t, ref.ID())
		require.False(t, ids[ref.ID()])
		ids[ref.ID()] = true
		x.do(ref, func(p *jobSelf) {
			require.Equal(t, ref, p.Ref())
			require.Equal(t, i, parties[p.Ref()])
			require.Equal(t, ref.ID(), p.ID())
			require.Equal(t, ref.String(), p.String())
			if i%2 == 0 {
				p.Exit()
			}
		})
	}
	require.EqualValues(t, 100, x.sys.Stats().Alive)
	require.Len(t, seen, 200)
	for ref, i := range seen {
		require.Equal(t, i, parties[ref])
	}
}

func TestString(t *testing.T) {
	x := newStepped(t, 1)
	bob, number := x.spawn(process.Options{Name: "bob"}), x.spawn(process.Options{})
	require.Equal(t, "bob", bob.String())
	require.Equal(t, fmt.Sprintf("process %d", number.ID()), number.String())
	require.Equal(t, "nobody", process.Ref[job]{}.String())
	x.do(bob, exits)
	x.do(number, exits)
	require.Equal(t, "bob", bob.String())
	require.Equal(t, fmt.Sprintf("process %d", number.ID()), number.String())
}

// String is safe while the process gets the fields that few processes need.
func TestAnyGoroutineMayCallString(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	ref := x.spawn(process.Options{})
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 100 {
			_ = ref.String()
		}
	}()
	for range 100 {
		x.do(ref, func(p *jobSelf) { p.After(time.Hour, exits).Cancel() })
	}
	servertest.Receive(t, done)
	require.NoError(t, ref.Send(x.sys, exits))
	x.close()
}

// The zero Ref behaves as a process that has ended.
func TestTheZeroRef(t *testing.T) {
	nobody := process.Ref[job]{}
	x := newStepped(t, 1)
	t.Run("is", func(t *testing.T) {
		require.Zero(t, nobody.ID())
		require.Equal(t, "nobody", nobody.String())
		require.NotEqual(t, nobody, x.spawn(process.Options{}))
	})
	t.Run("Send", func(t *testing.T) {
		require.ErrorIs(t, nobody.Send(x.sys, exits), process.ErrDead)
		require.ErrorIs(t, nobody.Deliver(t.Context(), exits), process.ErrDead)
	})
	t.Run("Kill", func(t *testing.T) { require.False(t, nobody.Kill()) })
	t.Run("Watch", func(t *testing.T) {
		n := onlyOne(t, x.watcher(nobody).heard())
		require.Equal(t, process.Stopped, n.Reason)
		require.NoError(t, n.Err)
		require.True(t, n.Of == process.AnyRef(nobody), "a Notice is about what was watched")
	})
	t.Run("Link", func(t *testing.T) {
		require.NotPanics(t, func() { process.Link(nobody, nobody, true) })
		for _, rule := range []bool{false, true} {
			for _, turned := range []bool{false, true} {
				ref := x.spawn(process.Options{})
				require.NotPanics(t, func() {
					if turned {
						require.False(t, process.Link(ref, nobody, rule).Cancel())
					} else {
						require.False(t, process.Link(nobody, ref, rule).Cancel())
					}
				})
				h := x.watcher(ref)
				x.all()
				require.Equal(t, rule, len(h.heard()) == 1, "the zero Ref has ended as Stopped")
			}
		}
	})
	t.Run("Ended", func(t *testing.T) {
		f := process.Ended(nobody)
		n, err := f.Value()
		require.NoError(t, err)
		require.Equal(t, process.Notice{Of: nobody, Reason: process.Stopped}, n)
		var verdict act.Directive
		x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
			verdict = f.Await().Act(t)
			return verdict
		}))
		x.all()
		require.Equal(t, act.Done, verdict)
	})
	t.Run("Ask", func(t *testing.T) {
		ask := process.Ask[job, int]{To: nobody, Message: func(process.Reply[int]) job { return exits }}
		var err error
		x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
			if ask.Act(t) == act.Failed {
				err = t.Err()
			}
			return act.Done
		}))
		x.all()
		require.ErrorIs(t, err, process.ErrDead)
	})
	t.Run("Call", func(t *testing.T) {
		_, err := process.Call(t.Context(), nobody, func(process.Reply[int]) job { return exits })
		require.ErrorIs(t, err, process.ErrDead)
	})
	t.Run("Request", func(t *testing.T) {
		var errs []error
		x.do(x.spawn(process.Options{}), func(p *jobSelf) {
			process.Request(p, nobody, func(process.Reply[int]) job { return exits }, time.Second, func(_ int, err error) job {
				return func(*jobSelf) { errs = append(errs, err) }
			})
		})
		x.later(time.Hour)
		require.Equal(t, []error{process.ErrDead}, errs)
	})
}

func TestEndedProcessesLeaveNoMemory(t *testing.T) {
	x := newStepped(t, 1)
	parent := x.spawn(process.Options{Limit: process.Unbounded})
	spawn := func(n int) {
		x.do(parent, func(p *jobSelf) {
			for range n {
				ref := process.Spawn(p, runJobs, process.Options{Name: "short"})
				process.Watch(p, ref, func(process.Notice) job { return func(*jobSelf) {} })
				require.NoError(t, ref.Send(p, exits))
			}
		})
	}
	spawn(5000)
	before := heapInUse()
	for range 4 {
		spawn(5000)
	}
	require.Less(t, heapInUse()-before, int64(1<<20))
	require.EqualValues(t, 1, x.sys.Stats().Alive)
	require.EqualValues(t, 25000, x.sys.Stats().Ended)
}

func TestTheErrorOfALinkedEnd(t *testing.T) {
	x := newStepped(t, 1)
	ref, other := x.spawn(process.Options{Name: "a"}), x.spawn(process.Options{Name: "b"})
	process.Link(ref, other, false)
	h := x.watcher(other)
	x.do(ref, fails)
	n := onlyOne(t, h.heard())
	require.Equal(t, process.Linked, n.Reason)
	require.EqualError(t, n.Err, "process: a has ended: failed: it has failed")
	require.True(t, errors.Is(n.Err, errFailed))
	require.True(t, slices.Contains(h.reasons(), process.Linked))
}

func TestAFailureThatNothingObservesIsLogged(t *testing.T) {
	for _, watched := range []bool{false, true} {
		sys := process.New(process.Config{})
		fails := process.Func[int](func(p *process.Self[int]) act.Directive { return p.Fail(errors.New("no luck")) })
		r := servertest.Start(t, act.Config{Schedulers: 1}, sys.Setup, func(*act.Scheduler) error {
			ref := process.Spawn(sys, fails, process.Options{Name: "Ada"})
			if watched {
				process.Ended(ref)
			}
			return nil
		})
		require.NoError(t, r.End())
		if watched {
			require.Zero(t, r.Logs.Len())
			continue
		}
		require.Equal(t, 1, r.Logs.Len())
		entry := r.Logs.All()[0]
		require.Equal(t, zapcore.ErrorLevel, entry.Level)
		require.Equal(t, "Ada", entry.ContextMap()["process"])
		require.Equal(t, "no luck", entry.ContextMap()["error"])
	}
}
