package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// These benchmarks run on one thread without contention. bench/process measures several schedulers, and compares with
// others.

// measure runs until all processes have ended.
func (x *traced) measure(b *testing.B) {
	b.ReportAllocs()
	b.ResetTimer()
	require.NoError(b, x.s.Run())
}

// A round trip is two messages, each with a hand-off.
func BenchmarkHandOffRoundTrip(b *testing.B) {
	x := newTraced(b, process.Config{})
	var ping process.Ref[int]
	pong := x.handler(func(p *process.Self[int], m int) {
		_ = ping.Send(p, m)
		if m == 0 {
			p.Exit()
		}
	})
	ping = x.handler(func(p *process.Self[int], m int) {
		if m == 0 {
			p.Exit()
			return
		}
		_ = pong.Send(p, m-1)
	})
	x.send(ping, b.N)
	x.measure(b)
}

func BenchmarkSpawnRunEnd(b *testing.B) {
	x := newTraced(b, process.Config{})
	brief := process.Func[int](func(*process.Self[int]) act.Directive { return act.Done })
	left := b.N
	process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		for range min(left, 64) {
			process.Spawn(p, brief, process.Options{})
			left--
		}
		if left > 0 {
			return act.Yield
		}
		return act.Done
	}), process.Options{})
	x.measure(b)
	require.EqualValues(b, b.N+1, x.sys.Stats().Ended)
}

func BenchmarkAsk(b *testing.B) {
	x := newTraced(b, process.Config{})
	type question = process.Reply[int]
	to := process.Spawn(x.sys, process.Handler[question](func(p *process.Self[question], q question) { q.Send(p, 1) }), process.Options{})
	alone := func(q question) question { return q }
	sum := 0
	var ask *process.Ask[question, int]
	x.s.Spawn(act.Func(func(t *act.Task) act.Directive {
		for ; sum < b.N; ask = nil {
			if ask == nil {
				ask = &process.Ask[question, int]{To: to, Message: alone}
			}
			if d := ask.Act(t); d != act.Done {
				return d
			}
			sum += ask.Value
		}
		to.Kill()
		return act.Done
	}))
	x.measure(b)
}
