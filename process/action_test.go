package process_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
)

// ended has the notice of p's end noted, once it comes.
func (x *table) ended(p process.AnyRef) func() process.Notice {
	f := process.Ended(p)
	return func() process.Notice {
		x.t.Helper()
		n, err := f.Value()
		require.NoError(x.t, err)
		return n
	}
}

func TestWhatAnActionMayAnswer(t *testing.T) {
	failure := errors.New("out of paper")
	for _, row := range []struct {
		name   string
		answer func(p *process.Self[int], turn int) act.Directive
		trace  string
		reason process.Reason
		err    string
	}{
		{"Done", func(*process.Self[int], int) act.Directive { return act.Done }, "1", process.Normal, ""},
		{"Yield, until it is done", func(_ *process.Self[int], turn int) act.Directive {
			if turn == 4 {
				return act.Done
			}
			return act.Yield
		}, "1234", process.Normal, ""},
		{"Exit, whatever the verdict", func(p *process.Self[int], _ int) act.Directive {
			p.Exit()
			return act.Yield
		}, "1", process.Normal, ""},
		{"Fail", func(p *process.Self[int], _ int) act.Directive { return p.Fail(failure) }, "1", process.Failed, "out of paper"},
		{"Fail, whatever the verdict", func(p *process.Self[int], _ int) act.Directive {
			_ = p.Fail(failure)
			return act.Done
		}, "1", process.Failed, "out of paper"},
		{"Failed without Fail", func(*process.Self[int], int) act.Directive { return act.Failed }, "1", process.Failed,
			"process: failed without saying why"},
		{"Fail without an error", func(p *process.Self[int], _ int) act.Directive { return p.Fail(nil) }, "1", process.Panicked,
			"process: Fail without an error"},
		{"a panic", func(*process.Self[int], int) act.Directive { panic("no") }, "1", process.Panicked, "no"},
		{"Async, which only tasks know", func(*process.Self[int], int) act.Directive { return act.Async }, "1", process.Panicked,
			"process: an action returned Async: return Yield, Wait, Done or Failed"},
		{"the zero Directive", func(*process.Self[int], int) act.Directive { return 0 }, "1", process.Panicked,
			"process: an action returned " + act.Directive(0).String() + ": return Yield, Wait, Done or Failed"},
		{"no Directive at all", func(*process.Self[int], int) act.Directive { return 77 }, "1", process.Panicked,
			"process: an action returned " + act.Directive(77).String() + ": return Yield, Wait, Done or Failed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := onTheTable(t, process.Config{})
			turn := 0
			p := process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
				turn++
				x.note(strconv.Itoa(turn))
				return row.answer(p, turn)
			}), process.Options{})
			ended := x.ended(p)
			require.Equal(t, row.trace, x.step())
			n := ended()
			require.Equal(t, row.reason, n.Reason)
			require.Equal(t, process.AnyRef(p), n.Of)
			if row.err == "" {
				require.NoError(t, n.Err)
			} else {
				require.ErrorContains(t, n.Err, row.err)
			}
			require.ErrorIs(t, p.Send(x.sys, 0), process.ErrDead)
			require.False(t, p.Kill())
			require.Equal(t, process.Stats{Spawned: 1, Ended: 1, Dropped: 1}, x.sys.Stats())
		})
	}
}

// What it has not received when it ends is dropped.
func TestMessagesLeftAtTheEndAreCounted(t *testing.T) {
	x := onTheTable(t, process.Config{})
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

func TestAfterExitATurnReceivesNoMore(t *testing.T) {
	x := onTheTable(t, process.Config{})
	p := process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		for {
			m, ok := p.Receive()
			if !ok {
				return act.Wait
			}
			x.note(strconv.Itoa(m))
			if m == 2 {
				p.Exit()
			}
		}
	}), process.Options{})
	x.step()
	x.send(p, 1, 2, 3)
	require.Equal(t, "12", x.step())
}

// Who waits and leaves messages where they are has no turn for them again: the next comes with the next message.
func TestMessagesThatAreNotReceivedMakeNoTurns(t *testing.T) {
	x := onTheTable(t, process.Config{})
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

// It may have come after the turn has looked.
func TestAMessageThatComesInATurnMakesAnotherOne(t *testing.T) {
	x := onTheTable(t, process.Config{})
	first := true
	var p process.Ref[int]
	p = process.Spawn(x.sys, process.Func[int](func(self *process.Self[int]) act.Directive {
		x.note("t")
		for {
			m, ok := self.Receive()
			if !ok {
				break
			}
			x.note(strconv.Itoa(m))
		}
		if first {
			first = false
			x.send(p, 7)
		}
		return act.Wait
	}), process.Options{})
	require.Equal(t, "tt7", x.step())
}

func TestPoke(t *testing.T) {
	begin := func(x *table) *process.Self[int] {
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
		x := onTheTable(t, process.Config{})
		p := begin(x)
		p.Poke()
		require.Equal(t, "t", x.step())
		require.Empty(t, x.step())
	})
	t.Run("several before that are one", func(t *testing.T) {
		x := onTheTable(t, process.Config{})
		p := begin(x)
		for range 5 {
			p.Poke()
		}
		require.Equal(t, "t", x.step())
	})
	t.Run("with a message it is one turn", func(t *testing.T) {
		x := onTheTable(t, process.Config{})
		p := begin(x)
		p.Poke()
		x.send(p.Ref(), 1)
		require.Equal(t, "m", x.step())
	})
	t.Run("in a turn it makes another one", func(t *testing.T) {
		x := onTheTable(t, process.Config{})
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
	t.Run("the dead have no more turns", func(t *testing.T) {
		x := onTheTable(t, process.Config{})
		p := begin(x)
		p.Kill()
		x.step()
		p.Poke()
		require.Empty(t, x.step())
	})
}

// One that is busy has its turn to the end, and no other.
func TestOneThatIsAlwaysBusyIsKilled(t *testing.T) {
	onOneAndOnTwo(t, func(t *testing.T, schedulers int) {
		const n = 50
		refs := make([]process.Ref[int], n)
		var turns atomic.Int64
		r := start(t, schedulers, process.Config{}, func(sys *process.System) {
			for i := range refs {
				refs[i] = process.Spawn(sys, process.Func[int](func(*process.Self[int]) act.Directive {
					turns.Add(1)
					return act.Yield
				}), process.Options{})
			}
		})
		require.Eventually(t, func() bool { return turns.Load() > 100*n }, servertest.Timeout, time.Millisecond)
		for _, to := range refs {
			require.True(t, to.Kill())
			require.False(t, to.Kill(), "that is under way")
		}
		r.end()
		for _, to := range refs {
			f := process.Ended(to)
			require.True(t, f.Resolved())
			n, err := f.Value()
			require.NoError(t, err)
			require.Equal(t, process.Killed, n.Reason)
		}
	})
}

// closer notes that it is closed.
type closer struct {
	x   *table
	act func(p *process.Self[int]) act.Directive
}

func (c *closer) Act(p *process.Self[int]) act.Directive { return c.act(p) }
func (c *closer) Close() error {
	c.x.note("closed")
	return nil
}

func TestAnActionIsClosedHoweverItEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		act  func(p *process.Self[int]) act.Directive
	}{
		{"done", func(*process.Self[int]) act.Directive { return act.Done }},
		{"failed", func(*process.Self[int]) act.Directive { return act.Failed }},
		{"panic", func(*process.Self[int]) act.Directive { panic("no") }},
		{"killed by itself", func(p *process.Self[int]) act.Directive {
			require.True(t, p.Kill())
			return act.Yield
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := onTheTable(t, process.Config{})
			process.Spawn(x.sys, &closer{x, row.act}, process.Options{})
			require.Equal(t, "closed", x.step())
			require.Empty(t, x.step())
		})
	}
	t.Run("killed before its first turn", func(t *testing.T) {
		x := onTheTable(t, process.Config{})
		p := process.Spawn(x.sys, &closer{x, func(*process.Self[int]) act.Directive {
			x.note("turn")
			return act.Wait
		}}, process.Options{})
		require.True(t, p.Kill())
		require.Equal(t, "closed", x.step())
	})
	t.Run("with the System", func(t *testing.T) {
		x := onTheTable(t, process.Config{})
		process.Spawn(x.sys, &closer{x, func(*process.Self[int]) act.Directive { return act.Wait }}, process.Options{})
		require.Empty(t, x.step())
		_ = x.s.Close()
		require.Equal(t, "closed", x.noted())
	})
}

// A panic ends one process, and disturbs nobody else: not even the one that was handed on in that turn.
func TestAPanicDisturbsNobodyElse(t *testing.T) {
	x := onTheTable(t, process.Config{})
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

func TestWhoAProcessIs(t *testing.T) {
	x := onTheTable(t, process.Config{})
	a, b := x.sleeper("a"), x.sleeper("b")
	named := process.Spawn(x.sys, process.Handler[int](func(*process.Self[int], int) {}), process.Options{Name: "the archive"})
	require.NotEqual(t, a, b)
	require.NotEqual(t, a.ID(), b.ID())
	require.Equal(t, map[process.Ref[int]]int{a: 1, b: 2}[a], 1)
	require.Equal(t, "the archive", named.String())
	require.Equal(t, "process "+strconv.FormatUint(a.ID(), 10), a.String())
	require.Equal(t, "nobody", process.Ref[int]{}.String())
	require.Zero(t, process.Ref[int]{}.ID())
	require.False(t, process.Ref[int]{}.Kill())
	x.step()
	a.Kill()
	x.step()
	require.NotEqual(t, a.ID(), x.sleeper("c").ID(), "a number is never used again")
	require.Equal(t, a, map[uint64]process.Ref[int]{a.ID(): a}[a.ID()])
}
