package process_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

type textReply = process.Reply[string]

// questionFor returns the Message of a question whose receiver calls f.
func questionFor(f func(p *jobSelf, r textReply)) func(textReply) job {
	return func(r textReply) job { return func(p *jobSelf) { f(p, r) } }
}

// outcomes are the outcomes of questions, in order: answers, or errors.
type outcomes struct{ all []string }

func (x *outcomes) add(v string, err error) {
	if err != nil {
		v = err.Error()
	}
	x.all = append(x.all, v)
}

// asks is a task that asks on the first scheduler.
func (x *stepped) asks(to process.Ref[job], message func(textReply) job, within time.Duration) *outcomes {
	got, ask := &outcomes{}, &process.Ask[job, string]{To: to, Message: message, Within: within}
	x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		d := ask.Act(t)
		if !d.Finished() {
			return d
		}
		got.add(ask.Value, t.Err())
		return act.Done
	}))
	x.all()
	return got
}

func TestTheOutcomeOfAQuestion(t *testing.T) {
	const dead, late = "process: the process has ended", "i/o timeout"
	forwardTo := func(to func(second process.Ref[job]) process.AnyRef, does job) func(*jobSelf, textReply, process.Ref[job]) {
		return func(p *jobSelf, r textReply, second process.Ref[job]) {
			r.Forward(to(second))
			_ = second.Send(p, does)
			p.Exit()
		}
	}
	theSecond := func(second process.Ref[job]) process.AnyRef { return second }
	for _, row := range []struct {
		name string
		do   func(p *jobSelf, r textReply, second process.Ref[job])
		want string // "": none
	}{
		{"an answer", func(p *jobSelf, r textReply, _ process.Ref[job]) { require.True(t, r.Send("yes")) }, "yes"},
		{"a failure", func(p *jobSelf, r textReply, _ process.Ref[job]) { require.True(t, r.Fail(errFailed)) }, "it has failed"},
		{"nothing", func(*jobSelf, textReply, process.Ref[job]) {}, ""},
		{"nothing, and an end", func(p *jobSelf, _ textReply, _ process.Ref[job]) { p.Exit() }, dead},
		{"a panic", func(p *jobSelf, _ textReply, _ process.Ref[job]) { panics(p) }, dead},
		{"an answer, and a panic", func(p *jobSelf, r textReply, _ process.Ref[job]) { r.Send("bye"); panics(p) }, "bye"},
		{"forwarded to one that lives", forwardTo(theSecond, func(*jobSelf) {}), ""},
		{"forwarded to one that ends", forwardTo(theSecond, exits), dead},
		{"forwarded to the zero Ref", forwardTo(func(process.Ref[job]) process.AnyRef { return process.Ref[job]{} }, exits), dead},
		{"forwarded to no process", forwardTo(func(process.Ref[job]) process.AnyRef { return nil }, exits), ""},
		{"forwarded after an answer", func(p *jobSelf, r textReply, second process.Ref[job]) {
			r.Send("yes")
			require.False(t, r.Forward(second))
			second.Kill()
		}, "yes"},
	} {
		for _, within := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprintf("%s, %v", row.name, within), func(t *testing.T) {
				x := newStepped(t, 2)
				x.later(time.Hour)
				asked, second := x.spawn(process.Options{}), x.spawn(process.Options{})
				var kept textReply
				got := x.asks(asked, questionFor(func(p *jobSelf, r textReply) { kept = r; row.do(p, r, second) }), within)
				var want []string
				if row.want != "" {
					want = []string{row.want}
				}
				x.later(time.Second - 1)
				require.Equal(t, want, got.all, "a deadline is never early")
				require.Equal(t, row.want == "", kept.Open())
				if x.later(1); row.want == "" && within > 0 {
					want = []string{late}
				}
				open := want == nil
				require.Equal(t, open, kept.Open())
				require.Equal(t, open, kept.Send("afterwards"))
				if x.all(); open {
					want = []string{"afterwards"}
				}
				require.False(t, kept.Open())
				require.False(t, kept.Fail(errFailed), "it is used once")
				quiescent := x.sys.Quiescent()
				x.later(time.Hour)
				require.Equal(t, want, got.all)
				require.True(t, quiescent.Resolved())
				_, set := x.g.Schedulers()[0].NextDeadline()
				require.False(t, set, "the deadline is forgotten")
			})
		}
	}
}

func TestAQuestionForAFullMailbox(t *testing.T) {
	for _, row := range []struct {
		name   string
		reject bool
		then   func(x *stepped, g *jobGate)
		want   string
	}{
		{"it refuses", true, func(*stepped, *jobGate) {}, "process: the mailbox is full"},
		{"there is room", false, func(x *stepped, g *jobGate) { g.let(x, 1); g.let(x, 1) }, "yes"},
		{"it ends", false, func(x *stepped, g *jobGate) { g.Kill(); x.all() }, "process: the process has ended"},
		{"it is late", false, func(x *stepped, g *jobGate) { x.later(time.Second) }, "i/o timeout"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 2)
			g := x.gate(process.Options{Limit: 1, Reject: row.reject})
			require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
			got := x.asks(g.Ref, questionFor(func(p *jobSelf, r textReply) { r.Send("yes") }), time.Second)
			require.Equal(t, !row.reject, got.all == nil)
			row.then(x, g)
			require.Equal(t, []string{row.want}, got.all)
		})
	}
}

// jobGate is a process that receives only as many messages as let allows.
type jobGate struct {
	process.Ref[job]
	self *jobSelf
	open int
}

func (x *stepped) gate(o process.Options) *jobGate {
	g := &jobGate{}
	g.Ref = process.Spawn(x.sys, process.Func[job](func(p *jobSelf) act.Directive {
		for g.self = p; g.open > 0; g.open-- {
			if m, ok := p.Receive(); ok {
				m(p)
			}
		}
		return act.Wait
	}), o)
	x.all()
	return g
}

// let makes the process receive n messages.
func (g *jobGate) let(x *stepped, n int) {
	g.open = n
	g.self.Poke()
	x.all()
}

// With a deadline that has passed the process is not asked.
func TestADeadlineThatHasPassed(t *testing.T) {
	x := newStepped(t, 2)
	got := x.asks(x.spawn(process.Options{}), questionFor(func(*jobSelf, textReply) { t.Error("asked") }), -1)
	require.Equal(t, []string{os.ErrDeadlineExceeded.Error()}, got.all)
}

func TestTheZeroReply(t *testing.T) {
	require.False(t, textReply{}.Open())
	require.False(t, textReply{}.Send("to nobody"))
	require.False(t, textReply{}.Fail(errFailed))
	require.False(t, textReply{}.Forward(nil))
	require.PanicsWithValue(t, "process: Fail without an error", func() { textReply{}.Fail(nil) })
}

func TestAnAskThatIsClosedGivesUp(t *testing.T) {
	x := newStepped(t, 2)
	var kept textReply
	keep := questionFor(func(_ *jobSelf, r textReply) { kept = r })
	ask := &process.Ask[job, string]{To: x.spawn(process.Options{}), Message: keep, Within: time.Hour}
	require.NoError(t, (&process.Ask[job, string]{To: ask.To, Message: keep}).Close(), "before it has begun")
	x.g.Schedulers()[0].Spawn(act.First(ask, &listener.Sleep{For: time.Second}))
	x.all()
	require.True(t, kept.Open())
	x.later(time.Second)
	require.False(t, kept.Open())
	require.False(t, kept.Send("late"))
	_, set := x.g.Schedulers()[0].NextDeadline()
	require.False(t, set)
}

// It affects neither the process whose turn it is, nor other observers, nor the owner.
func TestAPanicInAsAffectsNoOtherProcess(t *testing.T) {
	x, c := newStepped(t, 1), &waitingAction{}
	owner, other := x.spawn(process.Options{}), x.spawn(process.Options{})
	x.do(owner, func(p *jobSelf) {
		process.Watch(p, other, func(process.Notice) job { panic("burst") })
		process.Do(p, c, func(error) job { panic("burst") })
	})
	h := x.watcher(other)
	x.do(other, exits)
	require.Equal(t, 1, x.logs.Len())
	require.Equal(t, process.Normal, onlyOne(t, h.reasons()))
	c.end(act.Done)
	x.all()
	require.Equal(t, 1, c.closed)
	require.Equal(t, 2, x.logs.Len())
	alive := false
	x.do(owner, func(*jobSelf) { alive = true })
	require.True(t, alive)
	quiescent := x.sys.Quiescent()
	x.all()
	require.True(t, quiescent.Resolved())
}

func TestACallWhoseContextEndsGivesUp(t *testing.T) {
	var ref process.Ref[job]
	x := start(t, 2, func(sys *process.System) { ref = process.Spawn(sys, runJobs, process.Options{}) })
	ctx, cancel := context.WithCancel(t.Context())
	var kept textReply
	_, err := process.Call(ctx, ref, questionFor(func(_ *jobSelf, r textReply) { kept = r; cancel() }))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, kept.Open())
	require.False(t, kept.Send("late"))
	require.True(t, ref.Kill())
	x.end()
}

func TestCallWithAFullMailbox(t *testing.T) {
	for reject, want := range map[bool]error{true: process.ErrFull, false: context.Canceled} {
		x := newStepped(t, 1)
		g := x.gate(process.Options{Limit: 1, Reject: reject})
		require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := process.Call(ctx, g.Ref, questionFor(func(*jobSelf, textReply) {}))
		require.ErrorIs(t, err, want)
	}
}
