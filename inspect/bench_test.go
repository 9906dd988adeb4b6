package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// partner wakes the other one and waits.
type partner struct {
	waker act.Waker
	other *partner
}

func (p *partner) Act(t *act.Task) act.Directive {
	p.waker = t.Waker()
	p.other.waker.Wake()
	return act.Wait
}

// What it costs a turn to be inspected: the difference between two rows.
func BenchmarkInspected(b *testing.B) {
	yields := func(n int) func(s *act.Scheduler) {
		return func(s *act.Scheduler) {
			for range n {
				s.Spawn(act.Func(func(*act.Task) act.Directive { return act.Yield }))
			}
		}
	}
	for _, row := range []struct {
		name    string
		prepare func(s *act.Scheduler)
	}{
		{"a yielding turn, alone", yields(1)},
		{"a yielding turn, 64 ready", yields(64)},
		{"a wake-up and a turn", func(s *act.Scheduler) {
			for range 32 {
				a := new(partner)
				a.other = &partner{other: a}
				s.Spawn(a)
				s.Spawn(a.other)
			}
		}},
	} {
		for _, on := range []bool{false, true} {
			name := row.name + ", not inspected"
			x, cfg := &Inspector{Watch: Watch{Limit: -1}}, act.Config{}
			if on {
				name = row.name + ", inspected"
				x.Configure(&cfg)
			}
			x.off = !on
			b.Run(name, func(b *testing.B) {
				s := act.New(cfg)
				require.NoError(b, x.Setup(s))
				row.prepare(s)
				_, err := s.Step(1000)
				require.NoError(b, err)
				b.ReportAllocs()
				b.ResetTimer()
				n, err := s.Step(b.N)
				require.NoError(b, err)
				require.Equal(b, b.N, n)
				b.StopTimer()
				_ = s.Close() // tasks are left
			})
		}
	}
}
