package future_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestAllocations(t *testing.T) {
	s, _ := stepped(t)
	for _, row := range []struct {
		name string
		want float64
		do   func()
	}{
		{"a future", 1, func() { _ = future.New[int](s).Resolve(1) }},
		{"a future and a leaf", 2, func() {
			f := future.New[int](s)
			s.Spawn(f.Await())
			servertest.Step(t, s)
			_ = f.Resolve(1)
			servertest.Step(t, s)
		}},
		{"a future, a handler, its closure and what that has captured", 4, func() {
			f, n := future.New[int](s), 0
			f.Handle(func(int, error) { n++ })
			servertest.Step(t, s)
			_ = f.Resolve(1)
			servertest.Step(t, s)
		}},
		{"two futures and a callback", 3, func() {
			f := future.New[int](s)
			future.Map(f, double)
			servertest.Step(t, s)
			_ = f.Resolve(1)
			servertest.Step(t, s)
		}},
	} {
		row.do()
		require.Equal(t, row.want, testing.AllocsPerRun(200, row.do), row.name)
	}
}
