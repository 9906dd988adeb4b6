package process_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// The messages that a process has not received when it ends are dropped.
func TestMessagesLeftAtTheEndAreCounted(t *testing.T) {
	x := newTraced(t, process.Config{})
	p := x.handler(func(p *process.Self[int], m int) {
		if m == 3 {
			p.Exit()
		}
	})
	x.step()
	x.send(p, 1, 2, 3, 4, 5)
	x.step()
	require.EqualValues(t, 2, x.sys.Stats().Dropped)
	require.ErrorIs(t, p.Send(x.sys, 6), process.ErrDead)
	require.EqualValues(t, 3, x.sys.Stats().Dropped)
}

// A process that returns Wait and leaves messages in its mailbox has its next turn with the next message.
func TestMessagesThatATurnLeavesCauseNoTurn(t *testing.T) {
	x := newTraced(t, process.Config{})
	take := 0
	p := process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		x.note(fmt.Sprintf("[%d:", p.Pending()))
		for range take {
			if m, ok := p.Receive(); ok {
				x.note(strconv.Itoa(m))
			}
		}
		x.note("]")
		return act.Wait
	}), process.Options{})
	require.Equal(t, "[0:]", x.step())
	x.send(p, 1)
	require.Equal(t, "[1:]", x.step())
	x.send(p, 2, 3)
	require.Equal(t, "[3:]", x.step())
	take = 2
	x.send(p, 4)
	require.Equal(t, "[4:12]", x.step())
	x.send(p, 5, 6)
	require.Equal(t, "[4:34]", x.step())
	require.Empty(t, x.step())
}

func TestPoke(t *testing.T) {
	begin := func(x *traced) *process.Self[int] {
		var self *process.Self[int]
		process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			if _, ok := p.Receive(); ok {
				x.note("m")
			} else {
				x.note("t")
			}
			if self == nil {
				self = p
			}
			return act.Wait
		}), process.Options{})
		require.Equal(t, "t", x.step())
		return self
	}
	t.Run("gives one that sleeps a turn", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		p := begin(x)
		p.Poke()
		require.Equal(t, "t", x.step())
		require.Empty(t, x.step())
	})
	t.Run("several before that are one", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		p := begin(x)
		for range 5 {
			p.Poke()
		}
		require.Equal(t, "t", x.step())
	})
	t.Run("with a message it is one turn", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		p := begin(x)
		p.Poke()
		x.send(p.Ref(), 1)
		require.Equal(t, "m", x.step())
	})
	t.Run("in a turn it makes another one", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		left := 3
		process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			if x.note("t"); left > 0 {
				left--
				p.Poke()
			}
			return act.Wait
		}), process.Options{})
		require.Equal(t, "tttt", x.step())
	})
	t.Run("an ended process has no turn", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		p := begin(x)
		p.Kill()
		x.step()
		p.Poke()
		require.Empty(t, x.step())
	})
}

// The process to which the turn has handed its thread over still runs.
func TestAPanicAffectsNoOtherProcess(t *testing.T) {
	x := newTraced(t, process.Config{})
	a, b := x.sleeper("a"), x.sleeper("b")
	p := x.handler(func(p *process.Self[int], _ int) {
		_ = a.Send(p, 1)
		_ = b.Send(p, 1)
		panic("no")
	})
	x.step()
	x.send(p, 1, 2)
	require.Equal(t, "ab", x.step())
	x.send(a, 1)
	require.Equal(t, "a", x.step())
	n := x.sys.Stats()
	require.EqualValues(t, 1, n.Ended)
	require.EqualValues(t, 1, n.Dropped)
}
