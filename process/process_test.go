package process_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// A process that returns Wait and leaves messages in its mailbox has its next turn with the next message.
func TestMessagesThatATurnLeavesCauseNoTurn(t *testing.T) {
	x := newTraced(t, process.New())
	take := 0
	p := process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		x.note("[")
		for range take {
			if m, ok := p.Receive(); ok {
				x.note(strconv.Itoa(m))
			}
		}
		x.note("]")
		return act.Wait
	}), process.Options{})
	require.Equal(t, "[]", x.step())
	x.send(p, 1)
	require.Equal(t, "[]", x.step())
	x.send(p, 2, 3)
	require.Equal(t, "[]", x.step())
	take = 2
	x.send(p, 4)
	require.Equal(t, "[12]", x.step())
	x.send(p, 5, 6)
	require.Equal(t, "[34]", x.step())
	require.Empty(t, x.step())
}

func TestPoke(t *testing.T) {
	x := newTraced(t, process.New())
	var self *process.Self[int]
	again := 0
	process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		self = p
		if _, ok := p.Receive(); ok {
			x.note("m")
		} else {
			x.note("t")
		}
		if again > 0 {
			again--
			p.Poke()
		}
		return act.Wait
	}), process.Options{})
	require.Equal(t, "t", x.step())
	for range 5 {
		self.Poke()
	}
	require.Equal(t, "t", x.step(), "several before the turn are one")
	self.Poke()
	x.send(self.Ref(), 1)
	require.Equal(t, "m", x.step(), "with a message it is one turn")
	again = 3
	self.Poke()
	require.Equal(t, "tttt", x.step(), "in a turn it makes another one")
	self.Kill()
	x.step()
	self.Poke()
	require.Empty(t, x.step(), "an ended process has none")
}
