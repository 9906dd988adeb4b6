package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

type ball struct {
	n    *int
	from process.Ref[ball]
}

func BenchmarkPingPong(b *testing.B) {
	sys := process.New(process.Config{})
	g := act.NewGroup(act.Config{Schedulers: 1})
	defer g.Close()
	b.ReportAllocs()
	left := b.N
	require.NoError(b, g.Run(b.Context(), sys.Setup, func(s *act.Scheduler) error {
		var ping, pong process.Ref[int]
		pong = process.Spawn(sys, process.Handler[int](func(p *process.Self[int], m int) {
			if m < 0 {
				p.Exit()
				return
			}
			_ = ping.Send(p, m)
		}), process.Options{})
		ping = process.Spawn(sys, process.Handler[int](func(p *process.Self[int], m int) {
			if left--; left <= 0 {
				_ = pong.Send(p, -1)
				p.Exit()
				return
			}
			_ = pong.Send(p, m)
		}), process.Options{})
		return ping.Send(sys, 1)
	}))
	st := sys.Stats()
	require.EqualValues(b, 0, st.Alive)
	b.Logf("%+v", st)
}

func BenchmarkSpawnRunEnd(b *testing.B) {
	sys := process.New(process.Config{})
	g := act.NewGroup(act.Config{Schedulers: 1})
	defer g.Close()
	b.ReportAllocs()
	left := b.N
	require.NoError(b, g.Run(b.Context(), sys.Setup, func(s *act.Scheduler) error {
		done := process.Func[int](func(p *process.Self[int]) act.Directive { return act.Done })
		process.Spawn(sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			for range 64 {
				process.Spawn(p, done, process.Options{})
			}
			if left -= 64; left <= 0 {
				return act.Done
			}
			return act.Yield
		}), process.Options{})
		return nil
	}))
}
