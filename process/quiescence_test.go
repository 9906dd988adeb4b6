package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/process"
)

// The future is resolved in the next turn of the scheduler.
func TestQuiescent(t *testing.T) {
	type self = process.Self[int]
	for _, row := range []struct {
		name  string
		begin func(x *traced) (end func()) // end nil: nothing delays it
	}{
		{"tasks do not count", func(x *traced) func() {
			x.busyTask()
			return nil
		}},
		{"one that waits for room sleeps", func(x *traced) func() {
			to := x.gate(process.Options{Limit: 1})
			x.sender("", to.Ref, 1)
			return nil
		}},
		{"not before the owner of a timer has ended", func(x *traced) func() {
			to := x.first(func(p *self) {
				p.After(time.Hour, 1)
				require.True(x.t, p.After(time.Hour, 1).Cancel())
			})
			return func() { to.Kill() }
		}},
		{"not before what is awaited has come", func(x *traced) func() {
			awaited := future.New[int](x.s)
			x.first(func(p *self) { process.Do(p, awaited.Await(), func(error) int { v, _ := awaited.Value(); return v }) })
			return func() { require.NoError(x.t, awaited.Resolve(7)) }
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.WithBounds(1024, 16, 1))
			end := row.begin(x)
			f, g := x.sys.Quiescent(), x.sys.Quiescent()
			require.False(t, f.Resolved(), "the scheduler has had no turn")
			x.some(100)
			if end != nil {
				require.False(t, f.Resolved())
				end()
				x.some(100)
			}
			require.True(t, f.Resolved())
			require.True(t, g.Resolved())
			again := x.sys.Quiescent()
			require.False(t, again.Resolved(), "each call is about the time after it")
			x.some(100)
			require.True(t, again.Resolved())
		})
	}
}

// first spawns a process that calls f in its first turn, and receives messages.
func (x *traced) first(f func(p *process.Self[int])) process.Ref[int] {
	begun := false
	return process.Spawn(x.sys, process.Func(func(p *process.Self[int]) act.Directive {
		if !begun {
			begun = true
			f(p)
		}
		p.Receive()
		return act.Wait
	}), process.Options{})
}
