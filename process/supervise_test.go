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

// family is a supervisor with children on one stepped scheduler. It notes the name of a child in upper case when its Action
// is made, and in lower case when that is closed.
type family struct {
	*stepped
	process.Supervisor
	log      strings.Builder
	children map[string]process.Ref[job]
	bad      string // the child whose Action is not made
}

func newFamily(t testing.TB, s process.Supervision, names ...string) *family {
	x := &family{stepped: newStepped(t, 1), children: map[string]process.Ref[job]{}}
	x.Supervisor = process.Supervise(x.sys, s)
	for _, name := range names {
		x.add(x.Supervisor, name)
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
	defer x.log.Reset()
	return x.log.String()
}

// does makes children do m, and returns what was noted.
func (x *family) does(m job, names ...string) string {
	for _, name := range names {
		require.NoError(x.t, x.children[name].Send(x.sys, m))
	}
	x.all()
	return x.noted()
}

// after lets the time pass, in ms, and returns what was noted.
func (x *family) after(ms int) string {
	x.later(time.Duration(ms) * time.Millisecond)
	return x.noted()
}

func (x *family) says(text string) job { return func(*jobSelf) { x.log.WriteString(text) } }

const ms = time.Millisecond

func TestWhenChildrenStartAgain(t *testing.T) {
	type steps = []any // a job for a child, or milliseconds that pass; and what is noted then
	type to struct {
		job
		names string
	}
	rest := process.Supervision{Rest: true, Restarts: -1}
	for name, row := range map[string]struct {
		s     process.Supervision
		steps steps
	}{
		"one alone":                     {process.Supervision{}, steps{to{fails, "B"}, "b", 99, "", 1, "B"}},
		"after a panic":                 {process.Supervision{}, steps{to{panics, "B"}, "b", 100, "B"}},
		"each alone":                    {process.Supervision{}, steps{to{fails, "B"}, "b", 50, "", to{fails, "A"}, "a", 50, "B", 50, "A"}},
		"with the rest":                 {rest, steps{to{fails, "B"}, "bdc", 99, "", 1, "BCD"}},
		"with the rest, the last":       {rest, steps{to{fails, "D"}, "d", 100, "D"}},
		"one before those that wait":    {rest, steps{to{fails, "C"}, "cd", 50, "", to{fails, "B"}, "b", 50, "", 50, "BCD"}},
		"one behind those that wait":    {rest, steps{to{fails, "AD"}, "adcb", 100, "ABCD"}},
		"not after it is done":          {rest, steps{to{exits, "B"}, "b", 1000, ""}},
		"later and later":               {process.Supervision{Within: 300 * ms}, steps{to{fails, "A"}, "a", 100, "A", to{fails, "A"}, "a", 199, "", 1, "A", to{fails, "A"}, "a", 299, "", 1, "A", to{fails, "A"}, "a", 299, "", 1, "A"}},
		"soon after a calm time":        {process.Supervision{Within: time.Second}, steps{to{fails, "A"}, "a", 100, "A", to{fails, "A"}, "a", 200, "A", 1000, "", to{fails, "A"}, "a", 99, "", 1, "A"}},
		"as long as failures are rare":  {process.Supervision{Restarts: 1, Within: time.Second}, steps{to{fails, "A"}, "a", 1000, "A", to{fails, "A"}, "a", 1000, "A"}},
		"not after too many":            {process.Supervision{Restarts: 1}, steps{to{fails, "A"}, "a", 100, "A", to{fails, "B"}, "bdca", 1000, ""}},
		"not after too many, all alone": {process.Supervision{Restarts: 2, Wait: ms}, steps{to{fails, "ABC"}, "abcd", 1000, ""}},
	} {
		x := newFamily(t, row.s, "A", "B", "C", "D")
		require.Equal(t, "ABCD", x.noted(), name)
		for i := 0; i < len(row.steps); i += 2 {
			got := ""
			switch step := row.steps[i].(type) {
			case int:
				got = x.after(step)
			case to:
				got = x.does(step.job, strings.Split(step.names, "")...)
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

// What belonged to the failed Action ends with it. What others have observes the process.
func TestWhatAFailureEnds(t *testing.T) {
	x := newFamily(t, process.Supervision{Restarts: 1}, "A", "B")
	a, b, linked := x.children["A"], x.children["B"], x.spawn(process.Options{})
	w := x.watcher(a, x.Supervisor)
	process.Link(a, linked, true)
	x.does(func(p *jobSelf) {
		p.After(time.Second, x.says("timer"))
		process.Watch(p, b, func(process.Notice) job { return x.says("notice") })
		p.Fail(errFailed)
	}, "A")
	x.noted()
	require.False(t, process.Ended(linked).Resolved())
	require.Equal(t, "A", x.after(2000))
	require.Equal(t, "b", x.does(exits, "B"), "nobody watches it")
	require.Empty(t, w.heard())
	x.do(linked, exits)
	require.Equal(t, "a", x.noted(), "a link is a failure too: one too many")
	require.Equal(t, []process.Reason{process.Stopped, process.Failed}, w.reasons())
	err := w.heard()[1].Err
	require.ErrorContains(t, err, "process: A has failed too often: failure 2 within 1m0s: process: process ")
	require.Equal(t, 1, x.logs.FilterMessage("a process has failed, and will be started again").Len())
}

func TestTheErrorOfASupervisorIsThatOfItsChild(t *testing.T) {
	x := newFamily(t, process.Supervision{Restarts: 1}, "A")
	x.does(fails, "A")
	x.after(100)
	x.does(fails, "A")
	n, _ := process.Ended(x.Supervisor).Value()
	require.ErrorIs(t, n.Err, errFailed)
}

// A Kill is a failure, unless the process waits for its restart anyway. One of a supervisor ends its children first.
func TestKillsUnderSupervision(t *testing.T) {
	x := newFamily(t, process.Supervision{}, "A", "B", "C")
	x.noted()
	a := x.children["A"]
	for range 8 {
		require.True(t, a.Kill())
		x.all()
	}
	require.Equal(t, "a", x.noted())
	require.Equal(t, "A", x.after(100))
	w := x.watcher(a, x.Supervisor, x.children["B"])
	x.children["B"].Kill()
	x.Kill()
	x.Kill()
	x.all()
	require.Equal(t, "bca", x.noted(), "B by itself")
	require.Equal(t, []process.Reason{process.Stopped, process.Stopped, process.Killed}, w.reasons())
	require.ErrorIs(t, x.add(x.Supervisor, "D").Send(x.sys, fails), nil)
	x.all()
	require.Empty(t, x.noted())
	n, _ := process.Ended(x.children["D"]).Value()
	require.Equal(t, process.Stopped, n.Reason)
	require.Equal(t, 1, x.sys.Alive(), "the watcher")
}

// A supervisor that gives up is a child that has failed.
func TestSupervisorsOfSupervisors(t *testing.T) {
	x := newFamily(t, process.Supervision{Rest: true, Restarts: 1}, "A")
	inner := process.Supervise(x.sys, process.Supervision{Parent: x.Supervisor, Restarts: 1, Name: "inner"})
	x.add(inner, "B")
	x.add(inner, "C")
	x.add(x.Supervisor, "D")
	x.all()
	require.Equal(t, "ABCD", x.noted())
	require.Equal(t, "b", x.does(fails, "B"))
	require.Equal(t, "B", x.after(100))
	require.Equal(t, "bcd", x.does(panics, "B"), "the inner one gives up")
	require.NoError(t, x.children["C"].Send(x.sys, x.says("!")))
	inner.Kill() // it waits for its restart
	require.Equal(t, "BC!D", x.after(100))
	require.Equal(t, "c", x.does(fails, "C"), "its count begins anew")
	require.Equal(t, "C", x.after(100))
	w := x.watcher(inner, x.Supervisor, x.children["C"])
	inner.Kill()
	x.all()
	require.Equal(t, "cbda", x.noted())
	require.Equal(t, []process.Reason{process.Stopped, process.Stopped, process.Failed}, w.reasons())
	require.ErrorContains(t, w.heard()[2].Err, "process: inner has failed too often")
}

// Its children do not wait for times of their own.
func TestASupervisorThatStartsAgainStartsAllChildren(t *testing.T) {
	x := newFamily(t, process.Supervision{})
	inner := process.Supervise(x.sys, process.Supervision{Parent: x.Supervisor, Wait: time.Second})
	x.add(inner, "A")
	x.does(fails, "A")
	inner.Kill()
	x.all()
	require.Equal(t, "A", x.noted()+x.after(100))
}

// A second failure would end the supervisor.
func TestAProcessThatKillsItselfAsItFails(t *testing.T) {
	x := newFamily(t, process.Supervision{Restarts: 1})
	var a process.Ref[job]
	a = process.SpawnChild(x.Supervisor, func() process.Action[job] {
		return &closingProcess[job]{runJobs, func() error { a.Kill(); return nil }}
	}, process.Options{})
	x.do(a, fails)
	x.after(100)
	x.do(a, x.says("hello"))
	require.Equal(t, "hello", x.noted())
}

// The outer one is killed when the inner one, which was killed, has only to hear of its child.
func TestAChildEndsBeforeItsSupervisorInAnyCase(t *testing.T) {
	x := newFamily(t, process.Supervision{})
	inner := process.Supervise(x.sys, process.Supervision{Parent: x.Supervisor})
	a := process.SpawnChild(inner, func() process.Action[job] {
		return &closingProcess[job]{runJobs, func() error { x.Kill(); return nil }}
	}, process.Options{})
	w := x.watcher(inner, a)
	inner.Kill()
	x.all()
	require.Equal(t, []process.Reason{process.Stopped, process.Stopped}, w.reasons())
	require.Equal(t, a, w.heard()[0].Of)

	x.Supervisor = process.Supervise(x.sys, process.Supervision{})
	x.Kill()
	b := x.add(x.Supervisor, "B")
	b.Kill()
	x.all()
	require.True(t, process.Ended(b).Resolved(), "killed, and without a supervisor")
}

func TestTheOrderInWhichSupervisedProcessesEnd(t *testing.T) {
	for _, close := range []bool{false, true} {
		x := newFamily(t, process.Supervision{}, "A")
		inner := process.Supervise(x.sys, process.Supervision{Parent: x.Supervisor})
		x.add(inner, "B")
		x.add(inner, "C")
		x.add(x.Supervisor, "D")
		x.all()
		x.does(fails, "B")
		x.noted()
		require.NoError(t, x.children["A"].Send(x.sys, x.says("not received"))) // it is queued
		if close {
			_ = x.g.Close()
		} else {
			x.g.Shutdown(shutdown.Policy{Kind: shutdown.Suspend, Drop: true})
			_, _ = x.g.Schedulers()[0].Step(10)
		}
		require.Equal(t, "dca", x.noted())
		require.Zero(t, x.sys.Alive())
		if close {
			x.add(process.Supervise(x.sys, process.Supervision{}), "late")
			require.True(t, process.Ended(x.children["late"]).Resolved())
			require.Zero(t, x.sys.Alive())
		}
	}
}

func TestAnActionThatIsNotMadeIsAFailure(t *testing.T) {
	x := newFamily(t, process.Supervision{Wait: ms})
	x.bad = "B"
	w := x.watcher(x.Supervisor)
	x.add(x.Supervisor, "A")
	x.add(x.Supervisor, "B")
	x.add(x.Supervisor, "C")
	x.all()
	require.Equal(t, "AC", x.noted())
	x.bad = ""
	require.Equal(t, "B", x.after(1))
	x.bad = "A"
	x.does(fails, "A")
	for range 5 {
		x.after(32)
	}
	require.ErrorContains(t, onlyOne(t, w.heard()).Err, "no luck")
}

// It was told to its predecessor already.
func TestANewActionIsToldOfTheShutdown(t *testing.T) {
	x := newFamily(t, process.Supervision{}, "hold")
	var all []*stopRecorder
	a := process.SpawnChild(x.Supervisor, func() process.Action[job] {
		all = append(all, newStopRecorder())
		return all[len(all)-1]
	}, process.Options{})
	x.all()
	never := future.New[int](x.g.Schedulers()[0])
	x.does(func(p *jobSelf) { process.Do(p, never.Await(), func(error) job { return exits }) }, "hold") // keeps the order in force
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

func TestRestartsAreListed(t *testing.T) {
	x := newFamily(t, process.Supervision{Name: "parent"}, "A")
	restarts := func() (n int, kind string) {
		for _, row := range listed(t, x.g.Schedulers()[0], 10) {
			if row.Name == "A" {
				n, kind = row.Restarts, row.Kind
			}
		}
		return n, kind
	}
	x.does(fails, "A")
	x.after(100)
	n, kind := restarts()
	require.Equal(t, 1, n)
	require.Contains(t, kind, "add.func")
}
