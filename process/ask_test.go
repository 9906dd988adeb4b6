package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

type textReply = process.Reply[string]

// questionFor returns the Message of an Ask whose receiver calls f.
func questionFor(f func(p *jobSelf, r textReply)) func(textReply) job {
	return func(r textReply) job { return func(p *jobSelf) { f(p, r) } }
}

// askingTask is an Ask in a task, with its outcome.
type askingTask struct {
	ask     process.Ask[job, string]
	around  func(ask act.Action) act.Action // nil: the Ask itself is the action
	verdict act.Directive
	err     error
}

func (c *askingTask) start(s *act.Scheduler) {
	var a act.Action = &c.ask
	if c.around != nil {
		a = c.around(a)
	}
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		d := a.Act(t)
		if d.Finished() {
			c.verdict, c.err = d, t.Err()
			return act.Done
		}
		return d
	}))
}

// outcome returns the answer, the error, or "waits".
func (c *askingTask) outcome() string {
	switch c.verdict {
	case act.Done:
		return c.ask.Value
	case act.Failed:
		return c.err.Error()
	}
	return "waits"
}

func (x *stepped) asks(to process.Ref[job], message func(textReply) job, within time.Duration) *askingTask {
	c := &askingTask{ask: process.Ask[job, string]{To: to, Message: message, Within: within}}
	c.start(x.g.Schedulers()[0])
	x.all()
	return c
}

func TestAsk(t *testing.T) {
	var kept textReply
	for _, row := range []struct {
		name    string
		message func(p *jobSelf, r textReply)
		want    string
	}{
		{"an answer", func(p *jobSelf, r textReply) { require.True(t, r.Send(p, "yes")) }, "yes"},
		{"a failure", func(p *jobSelf, r textReply) { require.True(t, r.Fail(p, errFailed)) }, "it has failed"},
		{"nothing, and an end", func(p *jobSelf, r textReply) { p.Exit() }, "process: the process has ended"},
		{"an end by panic", func(p *jobSelf, r textReply) { panics(p) }, "process: the process has ended"},
		{"an answer, and an end", func(p *jobSelf, r textReply) { r.Send(p, "bye"); p.Exit() }, "bye"},
		{"an answer, and a panic", func(p *jobSelf, r textReply) { r.Send(p, "bye"); panics(p) }, "bye"},
		{"nothing", func(p *jobSelf, r textReply) { kept = r }, "waits"},
	} {
		for _, limit := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprintf("%s, %v", row.name, limit), func(t *testing.T) {
				x := newStepped(t, 2)
				var r textReply
				c := x.asks(x.spawn(process.Options{}), questionFor(func(p *jobSelf, q textReply) { r = q; row.message(p, q) }), limit)
				require.Equal(t, row.want, c.outcome())
				require.Equal(t, row.want == "waits", r.Open())
				require.Equal(t, row.want == "waits", kept.Open())
				require.Equal(t, row.want == "waits", r.Send(x.sys, "afterwards"))
				x.all()
				if row.want == "waits" {
					require.Equal(t, "afterwards", c.outcome())
				}
				_, set := x.g.Schedulers()[0].NextDeadline()
				require.False(t, set, "the deadline is forgotten")
			})
		}
	}
}

func TestAFinishedAskReturnsItsOutcomeAgain(t *testing.T) {
	x := newStepped(t, 1)
	answers := x.spawn(process.Options{})
	yes := process.Ask[job, string]{To: answers, Message: questionFor(func(p *jobSelf, r textReply) { r.Send(p, "yes") })}
	no := process.Ask[job, string]{To: answers, Message: questionFor(func(p *jobSelf, r textReply) { r.Fail(p, errFailed) })}
	turns := 0
	x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		a, b := yes.Act(t), no.Act(t)
		if !a.Finished() || !b.Finished() {
			return act.Wait
		}
		turns++
		require.Equal(x.t, act.Done, yes.Act(t))
		require.Equal(x.t, act.Failed, no.Act(t))
		require.ErrorIs(x.t, t.Err(), errFailed)
		return act.Done
	}))
	x.all()
	require.Equal(t, 1, turns)
}

func TestAskOfAnEndedProcess(t *testing.T) {
	x := newStepped(t, 1)
	ref := x.spawn(process.Options{})
	x.do(ref, exits)
	c := x.asks(ref, questionFor(func(*jobSelf, textReply) { t.Error("an ended process was asked") }), time.Second)
	require.Equal(t, act.Failed, c.verdict)
	require.ErrorIs(t, c.err, process.ErrDead)
}

// The process ends with the question still in its mailbox.
func TestAskOfAProcessThatEndsBeforeItReceives(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	x.all()
	require.NoError(t, ref.Send(x.sys, exits))
	c := &askingTask{ask: process.Ask[job, string]{To: ref, Message: questionFor(func(*jobSelf, textReply) { t.Error("an ended process received") })}}
	c.start(x.g.Schedulers()[0])
	_, err := x.g.Schedulers()[0].Step(1) // tasks run before processes
	require.NoError(t, err)
	x.all()
	require.ErrorIs(t, c.err, process.ErrDead)
	require.EqualValues(t, 1, x.sys.Stats().Dropped)
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

func TestAskWithAFullMailbox(t *testing.T) {
	yes := questionFor(func(p *jobSelf, r textReply) { r.Send(p, "yes") })
	t.Run("Reject", func(t *testing.T) {
		x := newStepped(t, 1)
		g := x.gate(process.Options{Limit: 1, Overflow: process.Reject})
		require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
		c := x.asks(g.Ref, yes, 0)
		require.ErrorIs(t, c.err, process.ErrFull)
	})
	t.Run("Drop", func(t *testing.T) {
		x := newStepped(t, 1)
		g := x.gate(process.Options{Limit: 1, Overflow: process.Drop})
		require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
		c := x.asks(g.Ref, yes, 0)
		require.ErrorIs(t, c.err, process.ErrFull, "the question was dropped")
	})
	t.Run("Block, and there is room", func(t *testing.T) {
		x := newStepped(t, 2)
		g := x.gate(process.Options{Limit: 1})
		require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
		all := []*askingTask{x.asks(g.Ref, yes, 0), x.asks(g.Ref, yes, time.Second), x.asks(g.Ref, yes, 0)}
		for _, c := range all {
			require.Equal(t, "waits", c.outcome())
		}
		for range all {
			g.let(x, 1)
		}
		g.let(x, 1)
		for _, c := range all {
			require.Equal(t, "yes", c.outcome())
		}
	})
	t.Run("Block, and an end", func(t *testing.T) {
		x := newStepped(t, 2)
		g := x.gate(process.Options{Limit: 1})
		require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
		c := x.asks(g.Ref, yes, 0)
		g.Kill()
		x.all()
		require.ErrorIs(t, c.err, process.ErrDead)
	})
	t.Run("Block, and a deadline", func(t *testing.T) {
		x := newStepped(t, 2)
		g := x.gate(process.Options{Limit: 1})
		require.NoError(t, g.Send(x.sys, func(*jobSelf) {}))
		late, c := x.asks(g.Ref, yes, time.Second), x.asks(g.Ref, yes, 0)
		x.later(time.Second)
		require.ErrorIs(t, late.err, os.ErrDeadlineExceeded)
		require.Equal(t, "waits", c.outcome())
		g.let(x, 1) // the waiter that has given up takes no room
		g.let(x, 1)
		require.Equal(t, "yes", c.outcome())
	})
}

func TestAskWithADeadline(t *testing.T) {
	x := newStepped(t, 2)
	x.later(time.Hour)
	var kept textReply
	c := x.asks(x.spawn(process.Options{}), questionFor(func(_ *jobSelf, r textReply) { kept = r }), time.Second)
	x.later(time.Second - 1)
	require.Equal(t, "waits", c.outcome(), "never early")
	require.True(t, kept.Open())
	x.later(1)
	require.Equal(t, act.Failed, c.verdict)
	require.ErrorIs(t, c.err, os.ErrDeadlineExceeded)
	require.False(t, kept.Open())
	require.False(t, kept.Send(x.sys, "late"))
	require.False(t, kept.Fail(x.sys, errFailed))
	x.all()
	require.Empty(t, c.ask.Value)
}

func TestAnAskThatIsClosedGivesUp(t *testing.T) {
	sleep := func(ask act.Action) act.Action { return act.First(ask, &listener.Sleep{For: time.Second}) }
	within := func(ask act.Action) act.Action { return listener.Within(time.Second, ask) }
	for name, around := range map[string]func(act.Action) act.Action{"act.First": sleep, "listener.Within": within} {
		t.Run(name, func(t *testing.T) {
			x := newStepped(t, 2)
			var kept textReply
			ref := x.spawn(process.Options{})
			keep := questionFor(func(_ *jobSelf, r textReply) { kept = r })
			c := &askingTask{ask: process.Ask[job, string]{To: ref, Message: keep, Within: time.Hour}, around: around}
			c.start(x.g.Schedulers()[0])
			x.all()
			require.True(t, kept.Open())
			x.later(time.Second)
			require.False(t, kept.Open())
			require.False(t, kept.Send(x.sys, "late"))
			require.Equal(t, name == "act.First", c.verdict == act.Done)
			_, set := x.g.Schedulers()[0].NextDeadline()
			require.False(t, set)

			in := &askingTask{ask: process.Ask[job, string]{To: ref, Message: keep}, around: around}
			in.start(x.g.Schedulers()[0])
			x.all()
			require.True(t, kept.Send(x.sys, "in time"))
			x.all()
			require.Equal(t, "in time", in.outcome())
		})
	}
	x := newStepped(t, 1)
	var kept textReply
	ask := &process.Ask[job, string]{To: x.spawn(process.Options{}), Message: questionFor(func(_ *jobSelf, r textReply) { kept = r })}
	require.NoError(t, ask.Close(), "before it has begun")
	ask = &process.Ask[job, string]{To: ask.To, Message: ask.Message}
	turns := 0
	x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		d := ask.Act(t)
		if turns++; turns == 1 {
			return d
		}
		require.NoError(x.t, ask.Close())
		require.Equal(x.t, act.Failed, ask.Act(t))
		require.ErrorIs(x.t, t.Err(), process.ErrCanceled)
		return act.Done
	}))
	x.all()
	x.g.Shutdown(drain) // gives the task one more turn
	x.all()
	require.Equal(t, 2, turns)
	require.False(t, kept.Open())
}

func TestAnAskOfADroppedTaskIsGivenUp(t *testing.T) {
	x := newStepped(t, 1)
	var kept textReply
	ask := &process.Ask[job, string]{To: x.spawn(process.Options{}), Message: questionFor(func(_ *jobSelf, r textReply) { kept = r })}
	x.g.Schedulers()[0].Spawn(ask)
	x.all()
	require.True(t, kept.Open())
	_ = x.g.Close()
	require.False(t, kept.Open())
}

func TestAnyGoroutineMayAnswer(t *testing.T) {
	for name, answer := range map[string]func(x *stepped, r textReply){
		"a goroutine": func(x *stepped, r textReply) {
			done := make(chan bool)
			go func() { done <- r.Send(x.sys, "yes") }()
			require.True(x.t, servertest.Receive(x.t, done))
		},
		"a task": func(x *stepped, r textReply) {
			x.g.Schedulers()[1].Spawn(act.Func(func(t *act.Task) act.Directive {
				require.True(x.t, r.Send(t, "yes"))
				return act.Done
			}))
		},
		"a third process": func(x *stepped, r textReply) {
			x.on(1, x.spawn(process.Options{}), func(p *jobSelf) { require.True(x.t, r.Send(p, "yes")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newStepped(t, 2)
			var kept textReply
			ref := x.spawn(process.Options{})
			keep := questionFor(func(_ *jobSelf, r textReply) { kept = r })
			c := x.asks(ref, keep, time.Second)
			answer(x, kept)
			x.all()
			require.Equal(t, "yes", c.outcome())

			asker, got := x.spawn(process.Options{}), ""
			x.on(0, asker, func(p *jobSelf) {
				process.Request(p, ref, keep, time.Second, func(v string, err error) job {
					require.NoError(t, err)
					return func(*jobSelf) { got = v }
				})
			})
			x.all()
			answer(x, kept)
			x.all()
			require.Equal(t, "yes", got)
			_, set := x.g.Schedulers()[0].NextDeadline()
			require.False(t, set, "the deadline is forgotten")
		})
	}
}

// The Reply is closed when the process that was asked ends, whichever process has the Reply then.
func TestAReplyMayBePassedOn(t *testing.T) {
	for _, lives := range []bool{true, false} {
		x := newStepped(t, 2)
		second := x.spawn(process.Options{})
		var kept textReply
		c := x.asks(x.spawn(process.Options{}), questionFor(func(p *jobSelf, r textReply) {
			require.NoError(t, second.Send(p, func(p *jobSelf) { kept = r }))
			if !lives {
				p.Exit()
			}
		}), 0)
		require.Equal(t, lives, kept.Open())
		require.Equal(t, lives, kept.Send(x.sys, "from the second"))
		x.all()
		if lives {
			require.Equal(t, "from the second", c.outcome())
		} else {
			require.ErrorIs(t, c.err, process.ErrDead, "with the end of the one who was asked")
		}
	}
}

func TestAForwardedQuestionDependsOnItsSecondAddressee(t *testing.T) {
	errDead := process.ErrDead.Error()
	for _, row := range []struct {
		name   string
		to     func(second process.Ref[job]) process.AnyRef
		second job // nil: the second ends before it is asked
		want   string
	}{
		{"which answers", func(to process.Ref[job]) process.AnyRef { return to }, func(*jobSelf) {}, "waits"},
		{"which ends", func(to process.Ref[job]) process.AnyRef { return to }, exits, errDead},
		{"which has ended", func(to process.Ref[job]) process.AnyRef { return to }, nil, errDead},
		{"which is the zero Ref", func(process.Ref[job]) process.AnyRef { return process.Ref[job]{} }, func(*jobSelf) {}, errDead},
		{"which is no process", func(process.Ref[job]) process.AnyRef { return nil }, exits, "waits"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 2)
			second := x.spawn(process.Options{})
			if row.second == nil {
				x.do(second, exits)
			}
			var kept textReply
			forwarded := false
			c := x.asks(x.spawn(process.Options{}), questionFor(func(p *jobSelf, r textReply) {
				kept = r
				forwarded = r.Forward(row.to(second))
				_ = second.Send(p, row.second)
				p.Exit()
			}), 0)
			require.Equal(t, row.want, c.outcome())
			waits := row.want == "waits"
			require.Equal(t, waits, kept.Send(x.sys, "answer"))
			x.all()
			if waits {
				require.True(t, forwarded)
				require.Equal(t, "answer", c.outcome())
			}
		})
	}
	t.Run("unless it has an outcome", func(t *testing.T) {
		require.False(t, textReply{}.Forward(nil))
		x := newStepped(t, 1)
		second := x.spawn(process.Options{})
		x.asks(x.spawn(process.Options{}), questionFor(func(p *jobSelf, r textReply) {
			r.Send(p, "answer")
			require.False(t, r.Forward(second))
		}), 0)
		x.do(second, exits)
	})
}

func TestAReplyIsUsedOnce(t *testing.T) {
	x := newStepped(t, 1)
	c := x.asks(x.spawn(process.Options{}), questionFor(func(p *jobSelf, r textReply) {
		require.True(t, r.Open())
		require.True(t, r.Send(p, "first"))
		require.False(t, r.Open())
		require.False(t, r.Send(p, "second"))
		require.False(t, r.Fail(p, errFailed))
	}), 0)
	require.Equal(t, "first", c.outcome())
}

func TestTheZeroReply(t *testing.T) {
	x := newStepped(t, 1)
	require.False(t, textReply{}.Open())
	require.False(t, textReply{}.Send(x.sys, "to nobody"))
	require.False(t, textReply{}.Fail(x.sys, errFailed))
	require.PanicsWithValue(t, "process: Fail without an error", func() { textReply{}.Fail(x.sys, nil) })
}

// outcomes are the outcomes of Requests, in order.
type outcomes struct{ all []string }

func (x *outcomes) as(v string, err error) job {
	if err != nil {
		v = err.Error()
	}
	return func(*jobSelf) { x.all = append(x.all, v) }
}

func TestRequest(t *testing.T) {
	late := os.ErrDeadlineExceeded.Error()
	for _, row := range []struct {
		name    string
		message func(p *jobSelf, r textReply)
		want    string // with a deadline; without one there is no timeout
	}{
		{"an answer", func(p *jobSelf, r textReply) { require.True(t, r.Send(p, "yes")) }, "yes"},
		{"a failure", func(p *jobSelf, r textReply) { require.True(t, r.Fail(p, errFailed)) }, "it has failed"},
		{"nothing, and an end", func(p *jobSelf, r textReply) { p.Exit() }, "process: the process has ended"},
		{"a panic", func(p *jobSelf, r textReply) { panics(p) }, "process: the process has ended"},
		{"nothing", func(p *jobSelf, r textReply) {}, late},
	} {
		for _, within := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprintf("%s, %v", row.name, within), func(t *testing.T) {
				x, got := newStepped(t, 2), &outcomes{}
				var kept textReply
				asker, asked := x.spawn(process.Options{}), x.spawn(process.Options{})
				x.on(0, asker, func(p *jobSelf) {
					process.Request(p, asked, questionFor(func(p *jobSelf, r textReply) { kept = r; row.message(p, r) }), within, got.as)
				})
				x.all()
				x.later(time.Second - 1)
				if row.want == late {
					require.Empty(t, got.all, "never early")
				} else {
					require.Equal(t, []string{row.want}, got.all)
				}
				x.later(1)
				x.later(time.Hour)
				if within == 0 && row.want == late {
					require.Empty(t, got.all)
					require.True(t, kept.Open())
					return
				}
				require.Equal(t, []string{row.want}, got.all)
				require.False(t, kept.Open())
				require.False(t, kept.Send(x.sys, "late"))
				quiescent := x.sys.Quiescent()
				x.all()
				require.Len(t, got.all, 1)
				require.True(t, quiescent.Resolved())
			})
		}
	}
}

func TestRequestsThatCannotBeAsked(t *testing.T) {
	x, got := newStepped(t, 1), &outcomes{}
	dead := x.spawn(process.Options{})
	x.do(dead, exits)
	full := x.gate(process.Options{Limit: 1, Overflow: process.Reject})
	require.NoError(t, full.Send(x.sys, func(*jobSelf) {}))
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		for _, to := range []process.Ref[job]{dead, full.Ref} {
			for _, within := range []time.Duration{0, time.Second} {
				process.Request(p, to, questionFor(func(*jobSelf, textReply) { t.Error("asked") }), within, got.as)
			}
		}
	})
	x.later(time.Hour)
	require.Equal(t, []string{
		"process: the process has ended", "process: the process has ended",
		"process: the mailbox is full", "process: the mailbox is full",
	}, got.all)
}

// The asker waits for room until the deadline, and no longer.
func TestTheDeadlineOfARequestAppliesWhileTheMailboxIsFull(t *testing.T) {
	x, got := newStepped(t, 2), &outcomes{}
	stuck := x.gate(process.Options{Limit: 1})
	require.NoError(t, stuck.Send(x.sys, func(*jobSelf) {}))
	asker := x.spawn(process.Options{})
	ask := func(within time.Duration) {
		x.do(asker, func(p *jobSelf) {
			process.Request(p, stuck.Ref, questionFor(func(*jobSelf, textReply) {}), within, got.as)
		})
	}
	ask(time.Second)
	require.NoError(t, asker.Send(x.sys, got.as("a message", nil)))
	x.later(time.Second - 1)
	require.Empty(t, got.all, "it waits for room")
	x.later(1)
	require.Equal(t, []string{"a message", os.ErrDeadlineExceeded.Error()}, got.all)
	ask(time.Second)
	ask(0)
	require.NoError(t, asker.Send(x.sys, got.as("another", nil)))
	x.later(time.Hour)
	require.Len(t, got.all, 2, "without a deadline it waits for good")
	stuck.let(x, 4)
	require.Len(t, got.all, 4)
}

// With a deadline that has passed the process is not asked.
func TestADeadlineThatHasPassed(t *testing.T) {
	x, got := newStepped(t, 2), &outcomes{}
	nobodyAsks := questionFor(func(*jobSelf, textReply) { t.Error("asked") })
	ref := x.spawn(process.Options{})
	x.do(x.spawn(process.Options{}), func(p *jobSelf) { process.Request(p, ref, nobodyAsks, -1, got.as) })
	require.Equal(t, []string{os.ErrDeadlineExceeded.Error()}, got.all)
	c := x.asks(ref, nobodyAsks, -time.Hour)
	require.Equal(t, os.ErrDeadlineExceeded.Error(), c.outcome())
}

func TestAnAskerReceivesMessagesDuringARequest(t *testing.T) {
	x, got := newStepped(t, 2), &outcomes{}
	var kept textReply
	asker, asked := x.spawn(process.Options{}), x.spawn(process.Options{})
	x.on(0, asker, func(p *jobSelf) {
		process.Request(p, asked, questionFor(func(_ *jobSelf, r textReply) { kept = r }), time.Second, got.as)
	})
	x.all()
	did := 0
	for i := range 10 {
		x.on(i%2, asker, func(*jobSelf) { did++ })
	}
	require.Equal(t, 10, did)
	x.on(1, asked, func(p *jobSelf) { require.True(t, kept.Send(p, "yes")) })
	x.all()
	require.Equal(t, []string{"yes"}, got.all)
}

// The end of the asker closes the Reply.
func TestARequestEndsWithItsAsker(t *testing.T) {
	for _, there := range []int{0, 1} {
		x, got := newStepped(t, 2), &outcomes{}
		var kept textReply
		asker, asked := x.spawn(process.Options{}), x.spawn(process.Options{})
		x.on(0, asker, func(p *jobSelf) {
			process.Request(p, asked, questionFor(func(_ *jobSelf, r textReply) { kept = r }), time.Second, got.as)
		})
		x.all()
		require.True(t, kept.Open())
		x.on(there, asker, exits)
		x.all()
		_, set := x.g.Schedulers()[0].NextDeadline()
		require.False(t, set, "the deadline is forgotten")
		require.False(t, kept.Open())
		require.False(t, kept.Send(x.sys, "late"))
		x.later(time.Hour)
		require.Empty(t, got.all)
	}
}

// A panic in as affects neither the process that answers or ends, nor the timer of the deadline.
func TestAPanicInAsOfRequestAffectsNoOtherProcess(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(x *stepped, asked process.Ref[job], r textReply)
	}{
		{"an answer", func(x *stepped, asked process.Ref[job], r textReply) {
			x.do(asked, func(p *jobSelf) { require.True(t, r.Send(p, "yes")) })
		}},
		{"an end", func(x *stepped, asked process.Ref[job], _ textReply) { x.do(asked, exits) }},
		{"a deadline", func(x *stepped, _ process.Ref[job], _ textReply) { x.later(time.Second) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 1)
			asker, asked := x.spawn(process.Options{}), x.spawn(process.Options{})
			h := x.watcher(asked)
			var kept textReply
			x.do(asker, func(p *jobSelf) {
				process.Request(p, asked, questionFor(func(_ *jobSelf, r textReply) { kept = r }), time.Second,
					func(string, error) job { panic("burst") })
			})
			row.end(x, asked, kept)
			for _, r := range h.reasons() {
				require.Equal(t, process.Normal, r)
			}
			require.Equal(t, 1, x.logs.Len())
		})
	}
}

// A Request of a process that has ended leaves no memory with the process that was asked.
func TestRequestsOfEndedProcessesAreForgotten(t *testing.T) {
	x := newStepped(t, 1)
	asked := x.spawn(process.Options{Limit: process.Unbounded})
	lives := func(n int) {
		for range n {
			process.Spawn(x.sys, process.Func[job](func(p *jobSelf) act.Directive {
				process.Request(p, asked, questionFor(func(*jobSelf, textReply) {}), time.Hour, (&outcomes{}).as)
				return act.Done
			}), process.Options{})
		}
		x.all()
	}
	lives(1000)
	before := heapInUse()
	lives(5000)
	require.Less(t, heapInUse()-before, int64(1<<18))
}

func TestCall(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	ref := x.spawn(process.Options{})
	call := func(ctx context.Context, f func(p *jobSelf, r textReply)) (string, error) {
		return process.Call(ctx, ref, questionFor(f))
	}
	answer, err := call(t.Context(), func(p *jobSelf, r textReply) { r.Send(p, "yes") })
	require.NoError(t, err)
	require.Equal(t, "yes", answer)
	_, err = call(t.Context(), func(p *jobSelf, r textReply) { r.Fail(p, errFailed) })
	require.ErrorIs(t, err, errFailed)

	ctx, cancel := context.WithCancel(t.Context())
	var kept textReply
	_, err = call(ctx, func(_ *jobSelf, r textReply) { kept = r; cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, kept.Open())
	require.False(t, kept.Send(x.sys, "late"))

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = call(ctx, func(*jobSelf, textReply) {})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = call(t.Context(), func(p *jobSelf, _ textReply) { p.Exit() })
	require.ErrorIs(t, err, process.ErrDead)
	_, err = call(t.Context(), func(*jobSelf, textReply) { t.Error("the process has ended") })
	require.ErrorIs(t, err, process.ErrDead)
	x.close()
}

func TestCallWithAFullMailbox(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	begun, release := make(chan bool), make(chan bool)
	busy := func(o process.Options) process.Ref[job] {
		o.Limit = 1
		ref := x.spawn(o)
		require.NoError(t, ref.Send(x.sys, func(*jobSelf) { begun <- true; <-release }))
		servertest.Receive(t, begun) // it counts against the bound until its turn has ended
		return ref
	}
	yes := questionFor(func(p *jobSelf, r textReply) { r.Send(p, "yes") })

	fails := busy(process.Options{Overflow: process.Reject})
	_, err := process.Call(t.Context(), fails, yes)
	require.ErrorIs(t, err, process.ErrFull)
	release <- true

	waits := busy(process.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = process.Call(ctx, waits, yes)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	answers := make(chan string, 10)
	for range 10 {
		go func() {
			answer, err := process.Call(t.Context(), waits, yes)
			answers <- fmt.Sprint(answer, err)
		}()
	}
	release <- true
	for range 10 {
		require.Equal(t, "yes<nil>", servertest.Receive(t, answers))
	}
	fails.Kill()
	waits.Kill()
	x.close()
}

// The answer, the end of the process that was asked, the deadline and the end of the asker come at the same time. Each
// question has at most one outcome, and exactly one if the asker is alive.
func TestOutcomesOfAQuestionRace(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	const batch = 100
	var came atomic.Int64
	count := map[string]int{}
	for round := range scaled(20_000) / batch {
		asker := &watcher{Ref: process.Spawn(x.sys, runJobs, process.Options{Limit: process.Unbounded})}
		asked, replies := [batch]process.Ref[job]{}, [batch]chan textReply{}
		results := [batch][]error{}
		for i := range batch {
			asked[i], replies[i] = x.spawn(process.Options{}), make(chan textReply, 1)
		}
		before := came.Load()
		x.do(asker.Ref, func(p *jobSelf) {
			for i := range batch {
				process.Request(p, asked[i], questionFor(func(_ *jobSelf, r textReply) { replies[i] <- r }),
					time.Duration(1+i)*3*time.Microsecond, func(_ string, err error) job {
						return func(*jobSelf) {
							results[i] = append(results[i], err)
							came.Add(1)
						}
					})
			}
		})
		var all sync.WaitGroup
		sent := [batch]bool{}
		all.Go(func() {
			for i := range batch {
				select {
				case r := <-replies[i]:
					sent[i] = r.Send(x.sys, "yes")
				default: // not asked yet
				}
			}
		})
		all.Go(func() {
			for i := range batch {
				if i%2 == 0 {
					asked[batch-1-i].Kill()
				}
			}
		})
		if round%4 == 0 {
			all.Go(func() { asker.Kill() })
		}
		all.Wait()
		x.quiesce()
		if round%4 != 0 {
			require.EqualValues(t, batch, came.Load()-before)
		}
		for i := range batch {
			require.LessOrEqual(t, len(results[i]), 1)
			for _, err := range results[i] {
				require.Equal(t, sent[i], err == nil)
				require.True(t, err == nil || errors.Is(err, process.ErrDead) || errors.Is(err, os.ErrDeadlineExceeded))
				count[fmt.Sprint(err)]++
			}
			asked[i].Kill()
		}
		asker.Kill()
		x.quiesce()
		require.EqualValues(t, 1, x.sys.Stats().Alive)
	}
	t.Log(count)
	x.close()
}

func TestADroppedQuestionFailsWithErrFull(t *testing.T) {
	sys := process.New(process.Config{})
	type question = process.Reply[int]
	deaf := process.Func[question](func(*process.Self[question]) act.Directive { return act.Wait })
	var full process.Ref[question]
	r := servertest.Start(t, act.Config{Schedulers: 1}, sys.Setup, func(*act.Scheduler) error {
		full = process.Spawn(sys, deaf, process.Options{Limit: 1, Overflow: process.Drop})
		return full.Send(sys, question{})
	})
	itself := func(q question) question { return q }
	_, err := process.Call(t.Context(), full, itself)
	require.ErrorIs(t, err, process.ErrFull)
	asked := make(chan error, 2)
	r.On(0, func(s *act.Scheduler) {
		ask := &process.Ask[question, int]{To: full, Message: itself}
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			d := ask.Act(t)
			if d == act.Failed {
				asked <- t.Err()
				return act.Done
			}
			return d
		}))
	})
	require.ErrorIs(t, servertest.Receive(t, asked), process.ErrFull)
	process.Spawn(sys, process.Func[error](func(p *process.Self[error]) act.Directive {
		if err, ok := p.Receive(); ok {
			asked <- err
			return act.Done
		}
		process.Request(p, full, itself, 0, func(_ int, err error) error { return err })
		return act.Wait
	}), process.Options{})
	require.ErrorIs(t, servertest.Receive(t, asked), process.ErrFull)
	full.Kill()
	require.NoError(t, r.End())
}

// An asker that has its answer does not wait until the mailbox has room again.
func TestAnAnswerEndsTheWaitForRoom(t *testing.T) {
	for _, within := range []time.Duration{0, time.Hour} {
		x, got := newStepped(t, 2), &outcomes{}
		asked := x.gate(process.Options{Limit: 1})
		require.NoError(t, asked.Send(x.sys, func(*jobSelf) {}))
		x.do(x.spawn(process.Options{}), func(p *jobSelf) {
			process.Request(p, asked.Ref, questionFor(func(p *jobSelf, r textReply) { r.Send(p, "yes") }), within, got.as)
		})
		x.do(x.spawn(process.Options{}), func(p *jobSelf) { require.NoError(t, asked.Send(p, func(*jobSelf) {})) })
		require.Empty(t, got.all)
		asked.let(x, 2)
		require.Equal(t, []string{"yes"}, got.all)
	}
}
