package process_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// The order of turns on one scheduler is a string. P sends to T, and has more to do; Q, R and others are queued.
func TestTheNextTurnAfterASend(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(x *traced, p *process.Self[int], s others)
		want string
	}{
		{"nothing is sent: queued processes, then the sender", func(*traced, *process.Self[int], others) {}, "PQRP"},
		{"the receiver sleeps", func(x *traced, p *process.Self[int], s others) {
			_ = s.t.Send(p, 0)
		}, "PTQRP"},
		{"the receiver is queued, behind others", func(x *traced, p *process.Self[int], s others) {
			_ = s.r.Send(p, 0)
		}, "PRRQP"},
		{"the receiver is the first in the queue", func(x *traced, p *process.Self[int], s others) {
			_ = s.q.Send(p, 0)
		}, "PQQRP"},
		{"of several receivers only the first gets the thread", func(x *traced, p *process.Self[int], s others) {
			_ = s.t.Send(p, 0)
			_ = s.u.Send(p, 0)
			_ = s.v.Send(p, 0)
		}, "PTQRUVP"},
		{"a second receiver is not taken out of its queue", func(x *traced, p *process.Self[int], s others) {
			_ = s.t.Send(p, 0)
			_ = s.r.Send(p, 0)
		}, "PTQRRP"},
		{"a second message to it is received in the same turn", func(x *traced, p *process.Self[int], s others) {
			_ = s.t.Send(p, 0)
			_ = s.t.Send(p, 0)
		}, "PTTQRP"},
		{"a message to itself is no hand-off", func(x *traced, p *process.Self[int], s others) {
			_ = p.Ref().Send(p, 0)
		}, "PQRPP"},
		{"a message to an ended process", func(x *traced, p *process.Self[int], s others) {
			if err := s.dead.Send(p, 0); !errors.Is(err, process.ErrDead) {
				x.note(fmt.Sprint(err))
			}
		}, "PQRP"},
		{"a new process is queued", func(x *traced, p *process.Self[int], s others) {
			process.Spawn(p, process.Func[int](func(*process.Self[int]) act.Directive {
				x.note("N")
				return act.Done
			}), process.Options{})
		}, "PQRNP"},
		{"a new process that is sent a message gets the thread", func(x *traced, p *process.Self[int], s others) {
			_ = process.Spawn(p, process.Handler[int](func(p *process.Self[int], _ int) {
				x.note("N")
				p.Exit()
			}), process.Options{}).Send(p, 0)
		}, "PNQRP"},
		{"a killed process is queued, to end", func(x *traced, p *process.Self[int], s others) {
			s.t.Kill()
			_ = s.u.Send(p, 0)
		}, "PUQRP"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.New())
			s := others{x.sleeper("T"), x.sleeper("U"), x.sleeper("V"), x.sleeper("Q"), x.sleeper("R"), x.sleeper("D")}
			s.dead.Kill()
			x.step()
			p := process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
				m, ok := p.Receive()
				if !ok {
					return act.Wait
				}
				if x.note("P"); m == first {
					row.do(x, p, s)
				}
				return act.Yield
			}), process.Options{})
			x.step()
			x.send(p, first, 0)
			x.send(s.q, 0)
			x.send(s.r, 0)
			require.Equal(t, row.want, x.step())
		})
	}
}

const first = 1

// others are the processes around the sender. All but q and r sleep at first.
type others struct{ t, u, v, q, r, dead process.Ref[int] }

// So the receiver does not wait for the sender's other messages.
func TestATurnReceivesNothingAfterAHandOff(t *testing.T) {
	x := newTraced(t, process.New())
	to := x.sleeper("T")
	x.step()
	p := x.handler(func(p *process.Self[int], _ int) {
		x.note("p")
		_ = to.Send(p, 0)
		x.note("p")
	})
	x.step()
	x.send(p, 1, 2, 3)
	require.Equal(t, "ppTppTppT", x.step())
	require.EqualValues(t, 3, x.sys.HandOffs())
}

func TestASendOfATaskIsNoHandOff(t *testing.T) {
	x := newTraced(t, process.New())
	one, two := x.sleeper("1"), x.sleeper("2")
	x.step()
	x.turn(func(t *act.Task) {
		_ = two.Send(t, 0)
		_ = one.Send(t, 0)
		_ = two.Send(t, 0)
		x.note("t")
	})
	require.Equal(t, "t221", x.step())
	require.Zero(t, x.sys.HandOffs())
}

func TestConfigMessagesBoundsATurn(t *testing.T) {
	for _, row := range []struct {
		messages int
		want     string
	}{
		{1, "abcabcbcccc"},
		{2, "aabbccbcccc"},
		{3, "aabbbcccccc"},
		{math.MaxInt, "aabbbcccccc"},
	} {
		t.Run(fmt.Sprintf("%d messages", row.messages), func(t *testing.T) {
			x := newTraced(t, process.WithBounds(1024, row.messages, 64))
			a, b, c := x.sleeper("a"), x.sleeper("b"), x.sleeper("c")
			x.step()
			x.send(a, 1, 2)
			x.send(b, 1, 2, 3)
			x.send(c, 1, 2, 3, 4, 5, 6)
			require.Equal(t, row.want, x.step())
		})
	}
}

// Two processes hand their thread over to each other. After a batch of messages tasks and queued processes have their
// turns.
func TestABatchBoundsAChainOfHandOffs(t *testing.T) {
	for _, row := range []struct {
		turn int
		want string
	}{
		{1, "atbtatbtatbt"},
		{4, "ababtababtababt"},
		{6, "abababtabababtabababt"},
	} {
		t.Run(fmt.Sprintf("%d messages", row.turn), func(t *testing.T) {
			x := newTraced(t, process.WithBounds(1024, 16, row.turn))
			x.pingPong("a", "b", 0)
			x.some(10)
			x.busyTask()
			require.Contains(t, x.some(100), row.want)
		})
	}
}

// A turn in which the batch ends is shorter.
func TestABatchBoundsATurnOfMoreMessages(t *testing.T) {
	for _, row := range []struct {
		messages, batch int
		want            string
	}{
		{100, 4, "aaaat" + "aaaat" + "a"},
		{3, 4, "aaaat" + "aaaat" + "a"},
		{1000, 1, "atatatatatatatata"},
		{3, math.MaxInt, "aaaaaaaaa"},
	} {
		t.Run(fmt.Sprintf("%d messages, batches of %d", row.messages, row.batch), func(t *testing.T) {
			x := newTraced(t, process.WithBounds(1024, row.messages, row.batch))
			a := x.sleeper("a")
			x.step()
			x.send(a, 1, 2, 3, 4, 5, 6, 7, 8, 9)
			x.busyTask()
			require.Equal(t, row.want, strings.Trim(x.some(25), "t"))
		})
	}
}

// A message takes 600 µs here. So batches of four and of two take too long, and one of one does not; then two are tried
// again.
func TestABatchThatTakesTooLongIsHalved(t *testing.T) {
	x := newTraced(t, process.WithBounds(1024, 16, 4))
	x.busyTask()
	x.pingPong("a", "b", 600*time.Microsecond)
	require.Contains(t, x.some(100), "tababtabtatbatbtabtatbat")
}

// busyTask spawns a task that is always ready.
func (x *traced) busyTask() {
	x.s.Spawn(act.Func(func(*act.Task) act.Directive {
		x.note("t")
		return act.Yield
	}))
}

// pingPong spawns two processes that send each other a message for ever. Each turn takes the given time.
func (x *traced) pingPong(one, two string, takes time.Duration) {
	var a, b process.Ref[int]
	answer := func(name string, to *process.Ref[int]) process.Ref[int] {
		return x.handler(func(p *process.Self[int], m int) {
			x.note(name)
			x.clock.Pass(takes)
			_ = to.Send(p, m)
		})
	}
	a, b = answer(one, &b), answer(two, &a)
	x.send(a, 1)
}
