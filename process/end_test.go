package process_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

func TestWhatAProcessHasSentArrivesBeforeTheNotice(t *testing.T) {
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
			p.Exit()
			require.NoError(t, parent.Send(p, note("after Exit")))
		})
		require.Equal(t, []string{"a message", "after Exit", "normal"}, log)
	}
}

// They come in addition to what fills the mailbox.
func TestNoBoundRefusesWhatAProcessHasBegun(t *testing.T) {
	for _, reject := range []bool{false, true} {
		x := newStepped(t, 1)
		var log []string
		note := func(text string) job { return func(*jobSelf) { log = append(log, text) } }
		other, p := x.spawn(process.Options{}), x.gate(process.Options{Limit: 1, Reject: reject})
		require.NoError(t, p.Send(x.sys, func(p *jobSelf) {
			p.After(time.Second, note("timer"))
			process.Watch(p, other, func(process.Notice) job { return note("notice") })
			process.Do(p, &listener.Sleep{For: time.Second}, func(error) job { return note("operation") })
		}))
		p.let(x, 1)
		require.NoError(t, p.Send(x.sys, note("message")))
		x.later(time.Second)
		x.do(other, exits)
		require.Empty(t, log)
		p.let(x, 10)
		require.ElementsMatch(t, []string{"message", "timer", "operation", "notice"}, log)
		require.Zero(t, x.sys.Counted().Dropped)
	}
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
		{"Fail, returned", process.Func(func(p *jobSelf) act.Directive { return p.Fail(errFailed) }), process.Failed, "it has failed"},
		{"Failed without Fail", verdict(act.Failed), process.Failed, "process: failed without saying why"},
		{"a panic", turn(panics), process.Panicked, "panic: burst"},
		{"a panic after Exit", turn(func(p *jobSelf) { p.Exit(); panics(p) }), process.Panicked, "panic: burst"},
		{"a panic with nil", turn(func(*jobSelf) { panic(error(nil)) }), process.Panicked, "panic: panic called with nil argument"},
		{"no verdict", verdict(0), process.Panicked, "panic: process: an action returned Directive(0)" + verdicts},
		{"Async", verdict(act.Async), process.Panicked, "panic: process: an action returned Async" + verdicts},
		{"Fail without an error", turn(func(p *jobSelf) { p.Fail(nil) }), process.Panicked, "panic: process: Fail without an error"},
		{"Kill of itself", turn(func(p *jobSelf) { p.Kill() }), process.Killed, ""},
		{"Kill of itself, then Exit", turn(func(p *jobSelf) { p.Kill(); p.Exit() }), process.Normal, ""},
		{"an unknown Directive", verdict(77), process.Panicked, "panic: process: an action returned " + act.Directive(77).String() + verdicts},
		{"Kill of itself, and Yield", process.Func(func(p *jobSelf) act.Directive { p.Kill(); return act.Yield }), process.Killed, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 1)
			closed, turns := 0, 0
			var ended *future.Future[process.Notice]
			action := process.Func(func(p *jobSelf) act.Directive { turns++; return row.action.Act(p) })
			ref := process.Spawn(x.sys, &closingProcess[job]{action, func() error {
				closed++
				require.False(t, ended.Resolved(), "it is closed before any observer is told")
				return nil
			}}, process.Options{})
			ended = process.Ended(ref)
			w := x.watcher(ref)
			n := onlyOne(t, w.heard())
			require.Equal(t, process.AnyRef(ref), n.Of)
			require.Equal(t, row.want, n.Reason)
			if row.text == "" {
				require.NoError(t, n.Err)
			} else {
				require.ErrorContains(t, n.Err, row.text)
			}
			again, err := ended.Value()
			require.NoError(t, err)
			require.Equal(t, n, again)
			require.Equal(t, []int{1, 1}, []int{turns, closed})
			require.ErrorIs(t, ref.Send(x.sys, exits), process.ErrDead)
			require.False(t, ref.Kill())
			stats := x.sys.Counted()
			require.EqualValues(t, 1, stats.Ended)
			require.EqualValues(t, 1, stats.Dropped)
		})
	}
}

// The order of its end is one that the other scheduler does not survive.
func TestRuntimeGoexitEndsRun(t *testing.T) {
	sys := process.New()
	g := act.NewGroup(act.Config{Schedulers: 2, Shutdown: shutdown.Policy{Time: time.Millisecond, Drop: true}})
	var ref process.Ref[job]
	closed := 0
	require.ErrorContains(t, runToEnd(t, g, sys.Setup, func(s *act.Scheduler) error {
		if s.Index() > 0 {
			return nil
		}
		ref = process.Spawn(sys, &closingProcess[job]{runJobs, func() error { closed++; return nil }}, process.Options{})
		return ref.Send(sys, func(*jobSelf) { runtime.Goexit() })
	}), "runtime.Goexit")
	_ = g.Close()
	require.Equal(t, 1, closed)
	n, err := process.Ended(ref).Value()
	require.NoError(t, err)
	require.Equal(t, process.Stopped, n.Reason)
}

// closingProcess is an Action with a Close method.
type closingProcess[M any] struct {
	process.Action[M]
	close func() error
}

func (c *closingProcess[M]) Close() error { return c.close() }

// The others still end, and are told.
func TestACloseThatPanicsAffectsNoOtherProcess(t *testing.T) {
	x := newStepped(t, 1)
	closed := 0
	var all []process.AnyRef
	for i := range 3 {
		ref := process.Spawn(x.sys, &closingProcess[job]{runJobs, func() error { closed++; panic("burst") }}, process.Options{})
		if all = append(all, ref); i > 0 {
			process.Link(all[i-1], ref, true)
		}
	}
	h := x.watcher(all...)
	all[0].Kill()
	x.all()
	require.Equal(t, []process.Reason{process.Killed, process.Linked, process.Linked}, h.reasons())
	require.Equal(t, 3, closed)
}

func TestWhatAProcessOwnsIsClosedBeforeItsAction(t *testing.T) {
	for name, end := range map[string]func(process.Ref[job], *stepped){
		"Exit":  func(ref process.Ref[job], x *stepped) { x.do(ref, exits) },
		"panic": func(ref process.Ref[job], x *stepped) { x.do(ref, panics) },
		"Kill":  func(ref process.Ref[job], x *stepped) { ref.Kill(); x.all() },
		"Close": func(_ process.Ref[job], x *stepped) { _ = x.g.Close() },
	} {
		x := newStepped(t, 1)
		log := ""
		note := func(text string) *closingProcess[job] {
			return &closingProcess[job]{runJobs, func() error { log += text; return nil }}
		}
		ref := process.Spawn(x.sys, note("action"), process.Options{})
		x.do(ref, func(p *jobSelf) {
			released := note("released ")
			for _, x := range []*closingProcess[job]{note("first "), released, note("second ")} {
				p.Own(x)
			}
			require.True(t, p.Release(released))
			require.False(t, p.Release(released))
		})
		require.Empty(t, log)
		end(ref, x)
		require.Equal(t, "second first action", log, name)
	}
}

// What was broken: a claim of the failed Action kept the next one from its name for ever.
func TestWhatASupervisedProcessOwnsIsClosedWithItsAction(t *testing.T) {
	x := newStepped(t, 1)
	log := ""
	ref := process.SpawnChild(process.Supervise(x.sys, process.Supervision{}), func() process.Action[job] {
		return &closingProcess[job]{runJobs, func() error { log += "action "; return nil }}
	}, process.Options{})
	x.do(ref, func(p *jobSelf) {
		p.Own(&closingProcess[job]{runJobs, func() error { log += "owned "; return nil }})
		p.Fail(errFailed)
	})
	require.Equal(t, "owned action ", log)
	x.later(time.Second)
	x.do(ref, exits)
	require.Equal(t, "owned action action ", log)
}

// A panic is logged in any case.
func TestAFailureThatNothingObservesIsLogged(t *testing.T) {
	for name, row := range map[string]struct {
		end  job
		want []int // lines of one that is observed, and of one that is not
	}{"Fail": {fails, []int{0, 1}}, "panic": {panics, []int{1, 1}}, "Exit": {exits, []int{0, 0}}} {
		x := newStepped(t, 1)
		watched, alone := x.spawn(process.Options{}), x.spawn(process.Options{})
		process.Ended(watched)
		x.do(watched, row.end)
		before := x.logs.Len()
		x.do(alone, row.end)
		require.Equal(t, row.want, []int{before, x.logs.Len() - before}, name)
	}
}

func TestAPanicEndsTheProgramWithCrash(t *testing.T) {
	const variable = "DAIMON_PROCESS_CRASH"
	if os.Getenv(variable) != "" {
		sys := process.New()
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

// A Ref stays equal, and keeps its number and its name.
func TestRefsIdentifyProcesses(t *testing.T) {
	x := newStepped(t, 1)
	ids := map[uint64]bool{0: true}
	for _, name := range []string{"bob", "", ""} {
		ref := x.spawn(process.Options{Name: name})
		require.NotContains(t, ids, ref.ID())
		ids[ref.ID()] = true
		want := cmp.Or(name, fmt.Sprintf("process %d", ref.ID()))
		x.do(ref, func(p *jobSelf) {
			require.Equal(t, ref, p.Ref())
			require.Equal(t, want, p.String())
			p.Exit()
		})
		require.Equal(t, want, ref.String())
	}
}

// The zero Ref behaves as a process that has ended.
func TestTheZeroRef(t *testing.T) {
	nobody := process.Ref[job]{}
	x := newStepped(t, 1)
	require.Zero(t, nobody.ID())
	require.Equal(t, "nobody", nobody.String())
	require.False(t, nobody.Kill())
	require.ErrorIs(t, nobody.Send(x.sys, exits), process.ErrDead)
	require.ErrorIs(t, nobody.Deliver(t.Context(), exits), process.ErrDead)
	_, err := process.Call(t.Context(), nobody, func(process.Reply[int]) job { return exits })
	require.ErrorIs(t, err, process.ErrDead)
	require.Equal(t, []string{process.ErrDead.Error()}, x.asks(nobody, func(textReply) job { return exits }, time.Second).all)

	stopped := process.Notice{Of: nobody, Reason: process.Stopped}
	require.Equal(t, []process.Notice{stopped}, x.watcher(nobody).heard(), "a Notice is about what was watched")
	n, err := process.Ended(nobody).Value()
	require.NoError(t, err)
	require.Equal(t, stopped, n)
	require.False(t, process.Link(nobody, nobody, true).Cancel())
	for _, always := range []bool{false, true} {
		one, two := x.spawn(process.Options{}), x.spawn(process.Options{})
		require.False(t, process.Link(one, nobody, always).Cancel())
		require.False(t, process.Link(nobody, two, always).Cancel())
		x.all()
		require.Equal(t, always, process.Ended(one).Resolved(), "it has ended as Stopped")
		require.Equal(t, always, process.Ended(two).Resolved())
	}
}
