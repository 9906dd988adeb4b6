package process_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// family is a supervisor, "(", with children on one stepped scheduler. It notes the name of a child in upper case when its
// Action is made, and in lower case when that is closed.
type family struct {
	*stepped
	process.Supervisor
	log      strings.Builder
	children map[string]process.Ref[job]
	inner    process.Supervisor
	bad      string // the child whose Action is not made
}

// newFamily makes the tree of names: A(BC)D are A, an inner supervisor of B and C, and D.
func newFamily(t testing.TB, s process.Supervision, names string) *family {
	x := &family{stepped: newStepped(t, 1), children: map[string]process.Ref[job]{}}
	x.Supervisor = process.Supervise(x.sys, s)
	x.inner = x.Supervisor
	s.Parent, s.Name = x.Supervisor, "inner"
	of := x.Supervisor
	for _, name := range strings.Split(names, "") {
		switch name {
		case "(":
			x.inner = process.Supervise(x.sys, s)
			of = x.inner
		case ")":
			of = x.Supervisor
		default:
			x.add(of, name)
		}
	}
	x.all()
	return x
}

func (x *family) add(of process.Supervisor, name string) process.Ref[job] {
	r := process.SpawnChild(of, func() process.Action[job] {
		if name == x.bad {
			panic("no luck")
		}
		x.log.WriteString(name)
		return &closingProcess[job]{runJobs, func() error { x.log.WriteString(strings.ToLower(name)); return nil }}
	}, process.Options{Name: name, Limit: 2})
	x.children[name] = r
	return r
}

// noted returns what was noted since.
func (x *family) noted() string {
	x.all()
	defer x.log.Reset()
	return x.log.String()
}

// does makes children do m, and returns what was noted.
func (x *family) does(m job, names string) string {
	for _, name := range strings.Split(names, "") {
		require.NoError(x.t, x.children[name].Send(x.sys, m))
	}
	return x.noted()
}

// after lets the time pass, in ms, and returns what was noted.
func (x *family) after(ms int) string {
	x.later(time.Duration(ms) * time.Millisecond)
	return x.noted()
}

func (x *family) says(text string) job { return func(*jobSelf) { x.log.WriteString(text) } }

func TestWhenChildrenStartAgain(t *testing.T) {
	type (
		fail  string // of these children
		panik string
		kill  string // "(": the inner supervisor
		exit  string
		steps = []any // what happens, an int are ms that pass; and what is noted then
		how   = process.Supervision
	)
	rest := how{Rest: true, Restarts: -1}
	for name, row := range map[string]struct {
		s     how
		tree  string
		steps steps
	}{
		"one alone":                 {how{}, "ABC", steps{fail("B"), "b", 99, "", 1, "B"}},
		"after a panic":             {how{}, "ABC", steps{panik("B"), "b", 100, "B"}},
		"after kills, which count":  {how{Restarts: 1}, "A", steps{kill("A"), "a", kill("A"), "", kill("A"), "", 100, "A", kill("A"), "a", 100, ""}},
		"each alone":                {how{}, "ABC", steps{fail("B"), "b", 50, "", fail("A"), "a", 50, "B", 50, "A"}},
		"with the rest":             {rest, "ABCD", steps{fail("B"), "bdc", 99, "", 1, "BCD", fail("D"), "d", 100, "D"}},
		"before some that wait":     {rest, "ABCD", steps{fail("C"), "cd", 50, "", fail("B"), "b", 50, "", 50, "BCD"}},
		"behind one that waits":     {rest, "ABCD", steps{fail("AD"), "adcb", 100, "ABCD"}},
		"not after it is done":      {rest, "AB", steps{exit("B"), "b", 1000, ""}},
		"later and later":           {how{Within: 300 * time.Millisecond}, "A", steps{fail("A"), "a", 100, "A", fail("A"), "a", 199, "", 1, "A", fail("A"), "a", 299, "", 1, "A", fail("A"), "a", 299, "", 1, "A"}},
		"soon after a calm time":    {how{Within: time.Second}, "A", steps{fail("A"), "a", 100, "A", fail("A"), "a", 200, "A", 1000, "", fail("A"), "a", 99, "", 1, "A"}},
		"if failures are rare":      {how{Restarts: 1, Within: time.Second}, "A", steps{fail("A"), "a", 1000, "A", fail("A"), "a", 1000, "A"}},
		"not after too many":        {how{Restarts: 1}, "ABCD", steps{fail("A"), "a", 100, "A", fail("B"), "bdca", 1000, ""}},
		"not after too many of all": {how{Restarts: 2}, "ABCD", steps{fail("ABC"), "abcd", 1000, ""}},
		"with their supervisor": {how{Rest: true, Restarts: 1}, "A(BC)D", steps{fail("B"), "bc", 100, "BC", panik("B"), "bcd", kill("("), "", 100, "BCD",
			fail("C"), "c", 100, "C", kill("("), "cbda", 1000, ""}},
		"without a time of their own": {how{}, "(A)", steps{fail("A"), "a", 100, "A", fail("A"), "a", kill("("), "", 100, "A"}},
	} {
		x := newFamily(t, row.s, row.tree)
		require.Equal(t, strings.NewReplacer("(", "", ")", "").Replace(row.tree), x.noted(), name)
		for i := 0; i < len(row.steps); i += 2 {
			got := ""
			switch step := row.steps[i].(type) {
			case int:
				got = x.after(step)
			case fail:
				got = x.does(fails, string(step))
			case panik:
				got = x.does(panics, string(step))
			case exit:
				got = x.does(exits, string(step))
			case kill:
				if step == "(" {
					x.inner.Kill()
				}
				x.children[string(step)].Kill()
				got = x.noted()
			}
			require.Equal(t, row.steps[i+1], got, "%s: step %d", name, i/2)
		}
	}
}

func TestTheMailboxIsForTheNextAction(t *testing.T) {
	x := newFamily(t, process.Supervision{}, "A")
	a := x.children["A"]
	say := func(r textReply) job { return func(*jobSelf) { r.Send("hello") } }
	require.NoError(t, a.Send(x.sys, fails))
	require.NoError(t, a.Send(x.sys, x.says("1")))
	old := x.asks(a, say, 0) // it finds the mailbox full, and asks again when fails was received
	require.Equal(t, "Aa", x.noted())
	require.NoError(t, a.Send(x.sys, x.says("2")))
	require.Error(t, a.Send(x.sys, x.says("3")), "the bound is in force")
	young := x.asks(a, say, 0)
	require.Equal(t, "A12", x.after(100))
	require.Equal(t, []string{"process: the process has ended"}, old.all)
	require.Equal(t, []string{"hello"}, young.all)
}

// What belonged to the failed Action ends with it. What others have observes the process, and a link ends with its other end.
func TestWhatAFailureEnds(t *testing.T) {
	x := newFamily(t, process.Supervision{Restarts: 1}, "AB")
	a, b, linked := x.children["A"], x.children["B"], x.spawn(process.Options{})
	w := x.watcher(a, x.Supervisor)
	process.Link(a, linked, true)
	x.does(func(p *jobSelf) {
		p.After(time.Second, x.says("timer"))
		process.Watch(p, b, func(process.Notice) job { return x.says("notice") })
		p.Fail(errFailed)
	}, "A")
	require.False(t, process.Ended(linked).Resolved())
	require.Equal(t, "A", x.after(2000))
	require.Equal(t, "b", x.does(exits, "B"), "nobody watches it")
	require.Empty(t, w.heard())
	x.do(linked, fails)
	require.Equal(t, "a", x.noted())
	require.Equal(t, []process.Reason{process.Stopped, process.Failed}, w.reasons())
	require.ErrorIs(t, w.heard()[1].Err, errFailed)
	require.ErrorContains(t, w.heard()[1].Err, "process: A has failed too often: failure 2 within 1m0s: process: process ")
	require.Equal(t, 1, x.logs.FilterMessage("a process has failed, and will be started again").Len())
}

func TestASupervisorEndsAfterItsChildren(t *testing.T) {
	x := newFamily(t, process.Supervision{}, "A(BC)D")
	w := x.watcher(x.inner, x.children["B"], x.children["C"], x.children["A"], x.Supervisor)
	x.noted()
	x.children["A"].Kill() // it fails first, and is not started again
	x.Kill()
	x.Kill()
	require.Equal(t, "adcb", x.noted())
	var order []process.AnyRef
	for _, n := range w.heard() {
		order = append(order, n.Of)
	}
	require.Equal(t, []process.AnyRef{x.children["A"], x.children["C"], x.children["B"], x.inner, x.Supervisor}, order)
	require.Equal(t, process.Killed, w.reasons()[4])
	x.Supervisor = process.Supervise(x.sys, process.Supervision{})
	x.Kill()
	x.add(x.Supervisor, "E").Kill()
	x.add(x.inner, "F")
	require.Empty(t, x.noted(), "their supervisors have ended, or will not hear of them")
	require.Equal(t, 1, x.sys.Alive(), "the watcher")
}

func TestTheOrderInWhichSupervisedProcessesEnd(t *testing.T) {
	for _, close := range []bool{false, true} {
		x := newFamily(t, process.Supervision{}, "A(BC)D")
		x.does(fails, "B")
		require.NoError(t, x.children["A"].Send(x.sys, x.says("not received"))) // it is queued
		if close {
			_ = x.g.Close()
			x.add(process.Supervise(x.sys, process.Supervision{}), "late")
		} else {
			x.g.Shutdown(shutdown.Policy{Kind: shutdown.Suspend, Drop: true})
			_, _ = x.g.Schedulers()[0].Step(10)
		}
		require.Equal(t, "dca", x.log.String())
		require.Zero(t, x.sys.Alive())
	}
}

func TestAnActionThatIsNotMadeIsAFailure(t *testing.T) {
	x := newFamily(t, process.Supervision{Wait: time.Millisecond}, "A")
	w := x.watcher(x.Supervisor)
	x.bad = "B"
	x.add(x.Supervisor, "B")
	x.add(x.Supervisor, "C")
	require.Equal(t, "AC", x.noted())
	for range 5 {
		x.after(16)
	}
	require.ErrorContains(t, onlyOne(t, w.heard()).Err, "no luck")
}

// Its predecessor was told already.
func TestANewActionIsToldOfTheShutdown(t *testing.T) {
	x := newFamily(t, process.Supervision{}, "H")
	var all []*stopRecorder
	a := process.SpawnChild(x.Supervisor, func() process.Action[job] {
		all = append(all, newStopRecorder())
		return all[len(all)-1]
	}, process.Options{})
	never := future.New[int](x.g.Schedulers()[0])
	x.does(func(p *jobSelf) { process.Do(p, never.Await(), func(error) job { return exits }) }, "H") // keeps the order in force
	x.g.Shutdown(namedOrder{"o", drain})
	x.do(a, fails)
	x.after(100)
	require.Len(t, all, 2)
	for _, s := range all {
		require.Equal(t, []string{"o"}, s.told)
	}
	require.NoError(t, never.Resolve(1))
	x.all()
}

// It had sent to a full mailbox, and was killed before there was room.
func TestARestartedProcessDoesNotWaitForEver(t *testing.T) {
	x := newFamily(t, process.Supervision{}, "A")
	to := x.gate(process.Options{Limit: 1})
	fill := func(p *jobSelf) {
		for range 2 {
			require.NoError(t, to.Send(p, x.says("!")))
		}
	}
	x.does(fill, "A")
	to.open = 2
	to.self.Poke()
	x.children["A"].Kill()
	x.all()
	x.after(100)
	x.does(fill, "A")
	to.let(x.stepped, 2)
	x.noted()
	require.Equal(t, "1", x.does(x.says("1"), "A"))
}

// A second failure would end the supervisor.
func TestAProcessThatKillsItselfAsItFails(t *testing.T) {
	x := newFamily(t, process.Supervision{Name: "parent", Restarts: 1}, "")
	var a process.Ref[job]
	a = process.SpawnChild(x.Supervisor, func() process.Action[job] {
		return &closingProcess[job]{runJobs, func() error { a.Kill(); return nil }}
	}, process.Options{Name: "child"})
	x.do(a, fails)
	x.after(100)
	x.do(a, x.says("hello"))
	require.Equal(t, "hello", x.noted())
	all := listed(t, x.g.Schedulers()[0], 10)
	require.Equal(t, []int{0, 1}, []int{all[0].Restarts, all[1].Restarts})
	require.Contains(t, all[1].Kind, "TestAProcessThatKillsItself")
}
