package process_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

// gate is a process that receives messages when receive is called, and notes them.
type gate struct {
	process.Ref[int]
	x    *traced
	self *process.Self[int]
	more int // messages it may still receive
}

func (x *traced) gate(o process.Options) *gate {
	g := &gate{x: x}
	g.Ref = process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		for g.self = p; g.more > 0; g.more-- {
			m, ok := p.Receive()
			if !ok {
				break
			}
			x.note(strconv.Itoa(m))
		}
		return act.Wait
	}), o)
	x.step()
	return g
}

// receive makes it receive n messages in one turn, and returns what was noted then.
func (g *gate) receive(n int) string {
	g.more = n
	g.self.Poke()
	return g.x.step()
}

// outcome describes the result of a Send.
func outcome(err error) string {
	var blocked act.Blocked
	switch {
	case err == nil:
		return "sent"
	case errors.Is(err, process.ErrFull):
		return "full"
	case errors.Is(err, process.ErrDead):
		return "dead"
	case errors.As(err, &blocked):
		return "blocked"
	}
	return err.Error()
}

// A process is sent five messages, and then receives all that it has. Most have room for three.
func TestSendingToAFullProcess(t *testing.T) {
	for _, row := range []struct {
		name    string
		options process.Options
		sender  string
		sends   string
		arrive  string
		dropped int64
	}{
		{"a goroutine is blocked", process.Options{Limit: 3}, "goroutine", "sent sent sent blocked blocked", "123", 0},
		{"a task is blocked", process.Options{Limit: 3}, "task", "sent sent sent blocked blocked", "123", 0},
		{"a process has sent them, and waits", process.Options{Limit: 3}, "process", "sent sent sent sent sent", "12345", 0},
		{"a goroutine's are refused", process.Options{Limit: 3, Reject: true}, "goroutine", "sent sent sent full full", "123", 2},
		{"a task's are refused", process.Options{Limit: 3, Reject: true}, "task", "sent sent sent full full", "123", 2},
		{"a process's are refused", process.Options{Limit: 3, Reject: true}, "process", "sent sent sent full full", "123", 2},
		{"there is always room", process.Options{Limit: -1}, "goroutine", "sent sent sent sent sent", "12345", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.New())
			to := x.gate(row.options)
			var outcomes []string
			five := func(from process.Sender) {
				for m := 1; m <= 5; m++ {
					outcomes = append(outcomes, outcome(to.Send(from, m)))
				}
			}
			switch row.sender {
			case "goroutine":
				five(x.sys)
			case "task":
				x.turn(func(t *act.Task) { five(t) })
			case "process":
				process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
					five(p)
					return act.Done
				}), process.Options{})
			}
			x.step()
			require.Equal(t, row.sends, strings.Join(outcomes, " "))
			require.Equal(t, row.arrive, to.receive(100))
			require.Equal(t, row.dropped, x.sys.Counted().Dropped)
		})
	}
}

func TestTheBoundOfAMailbox(t *testing.T) {
	for _, row := range []struct {
		name        string
		limit, room int
	}{
		{"by default", 0, 1024},
		{"smaller", 2, 2},
		{"unbounded", -1, 5000},
		{"the largest", math.MaxInt, 5000},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.New())
			to := x.gate(process.Options{Limit: row.limit, Reject: true})
			n := 0
			for n < 5000 && to.Send(x.sys, 0) == nil {
				n++
			}
			require.Equal(t, row.room, n)
			to.receive(1)
			if row.room < 5000 {
				require.NoError(t, to.Send(x.sys, 0), "there is room for one more")
				require.ErrorIs(t, to.Send(x.sys, 0), process.ErrFull)
			}
		})
	}
}

// Only the process itself knows of the room earlier.
func TestReceivedMessagesCountUntilTheTurnEnds(t *testing.T) {
	x := newTraced(t, process.WithBounds(2, 16, 64))
	var to process.Ref[int]
	to = process.Spawn(x.sys, process.Handler[int](func(p *process.Self[int], m int) {
		x.note(strconv.Itoa(m))
		if m == 1 {
			x.note("(" + outcome(to.Send(x.sys, 3)) + " " + outcome(to.Send(p, 4)) + " " + outcome(to.Send(p, 5)) + ")")
		}
	}), process.Options{Reject: true})
	x.step()
	x.send(to, 1, 2)
	require.Equal(t, "1(full sent full)24", x.step())
}

func TestAProcessThatSendsToItselfNeverWaits(t *testing.T) {
	x := newTraced(t, process.WithBounds(1, 16, 64))
	var to process.Ref[int]
	to = x.handler(func(p *process.Self[int], m int) {
		x.note(strconv.Itoa(m))
		for range m {
			_ = to.Send(p, m-1)
		}
	})
	x.step()
	x.send(to, 3)
	require.Equal(t, "3222111111000000", x.step())
}

// sender spawns a process that sends one message each turn. It notes its name, and an error.
func (x *traced) sender(name string, to process.Ref[int], m int) process.Ref[int] {
	return process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		x.note(name)
		if err := to.Send(p, m); err != nil {
			x.note("(" + outcome(err) + ")")
			return act.Done
		}
		return act.Yield
	}), process.Options{})
}

// The process has sent one message beyond the bound, and has no turn until there is room for that.
func TestAProcessThatWaitsForRoomHasNoTurn(t *testing.T) {
	x := newTraced(t, process.WithBounds(2, 16, 64))
	to := x.gate(process.Options{})
	s := x.sender("s", to.Ref, 1)
	require.Equal(t, "sss", x.step())
	x.send(s, 0)
	require.Empty(t, x.step(), "a message is no reason")
	require.Equal(t, "1", to.receive(1), "two are left, which is as many as may be")
	require.Equal(t, "1ss", to.receive(1), "now there is room for one, and one more is too much again")
	require.Equal(t, "1", to.receive(1))
	require.Equal(t, "11sss", to.receive(2))
}

func TestWaitersForRoomContinueInOrder(t *testing.T) {
	x := newTraced(t, process.WithBounds(2, 16, 64))
	to := x.gate(process.Options{})
	x.send(to.Ref, 1, 2)
	for i, name := range []string{"a", "b", "c"} {
		x.sender(name, to.Ref, 3+i)
	}
	require.Equal(t, "abc", x.step())
	require.Equal(t, "123", to.receive(3), "two are left")
	var all []string
	for range 6 {
		all = append(all, to.receive(1))
	}
	require.Equal(t, "4aa 5 3bb 3 4cc 4", strings.Join(all, " "))
}

// sendingTask sends one message after the other, and waits while the mailbox is full.
type sendingTask struct {
	x    *traced
	to   process.Ref[int]
	sent int
	wake act.Waker
}

func (a *sendingTask) Act(t *act.Task) act.Directive {
	a.wake = t.Waker()
	err := a.to.Send(t, 7)
	if a.x.note("t"); err == nil {
		a.sent++
		return act.Yield
	}
	a.x.note("(" + outcome(err) + ")")
	if errors.Is(err, process.ErrDead) {
		return act.Done
	}
	return listener.Next(t, err)
}

// It is woken by other events while it waits, calls Arm each time, and is one waiter.
func TestATaskWaitsForRoom(t *testing.T) {
	x := newTraced(t, process.WithBounds(2, 16, 64))
	to := x.gate(process.Options{})
	a := &sendingTask{x: x, to: to.Ref}
	x.s.Spawn(a)
	require.Equal(t, "ttt(blocked)", x.step())
	for range 10 {
		a.wake.Wake()
		require.Equal(t, "t(blocked)", x.step())
	}
	require.Equal(t, 1, to.Waiters())
	require.Equal(t, "7tt(blocked)", to.receive(1))
	require.Equal(t, "77ttt(blocked)", to.receive(2))
	require.Empty(t, x.step())
	to.Kill()
	require.Equal(t, "t(dead)", x.step())
}

// The receiver has its turn on another scheduler in between.
func TestATaskThatArmsWhenThereIsRoomIsWoken(t *testing.T) {
	x := newStepped(t, 2)
	to := x.spawn(process.Options{Limit: 1})
	x.all()
	require.NoError(t, to.Send(x.sys, func(*jobSelf) {}))
	turns := 0
	x.g.Schedulers()[0].Spawn(act.Func(func(t *act.Task) act.Directive {
		err := to.Send(t, func(*jobSelf) {})
		if turns++; turns == 1 {
			require.Equal(x.t, "blocked", outcome(err))
			x.sys.Quiescent() // wakes all schedulers
			x.only(1)
			return listener.Next(t, err)
		}
		require.NoError(x.t, err)
		return act.Done
	}))
	x.all()
	require.Equal(t, 2, turns)
}

func TestDeliverWaitsForRoom(t *testing.T) {
	for _, row := range []struct {
		name  string
		then  func(to *gate, giveUp context.CancelFunc)
		want  error
		heard string // by the receiver
	}{
		{"until there is some", func(to *gate, _ context.CancelFunc) { to.x.note(to.receive(1)) }, nil, "12"},
		{"until the receiver is killed", func(to *gate, _ context.CancelFunc) { to.Kill(); to.x.step() }, process.ErrDead, ""},
		{"until its context ends: then it was not sent", func(_ *gate, giveUp context.CancelFunc) { giveUp() }, context.Canceled, "1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.WithBounds(1, 16, 64))
			to := x.gate(process.Options{})
			require.NoError(t, to.Deliver(t.Context(), 1), "there is room")
			ctx, giveUp := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- to.Deliver(ctx, 2) }()
			require.Eventually(t, func() bool { return to.Waiters() == 1 }, servertest.Timeout, 10*time.Microsecond)
			row.then(to, giveUp)
			require.ErrorIs(t, servertest.Receive(t, done), row.want)
			require.Zero(t, to.Waiters())
			require.Equal(t, row.heard, x.noted()+to.receive(10))
		})
	}
}
