package coro_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
)

// BenchmarkSwitch compares a turn that yields of an action and of a coroutine, which switches there and back.
func BenchmarkSwitch(b *testing.B) {
	for name, a := range map[string]func(over *bool) act.Action{
		"action": func(over *bool) act.Action {
			return act.Func(func(*act.Task) act.Directive {
				if *over {
					return act.Done
				}
				return act.Yield
			})
		},
		"coro": func(over *bool) act.Action {
			return coro.New(func(co *coro.Co) error {
				for !*over {
					if err := co.Yield(); err != nil {
						return err
					}
				}
				return nil
			})
		},
	} {
		b.Run(name, func(b *testing.B) {
			s, over := act.New(act.Config{}), false
			s.Spawn(a(&over))
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_, err := s.Step(1)
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			_, _ = s.Step(b.N)
			b.StopTimer()
			over = true
			require.NoError(b, s.Run())
			require.NoError(b, s.Close())
		})
	}
}

// BenchmarkShortBody runs a coroutine from beginning to end: one that has been used before, and one that is new.
func BenchmarkShortBody(b *testing.B) {
	b.Run("used again", func(b *testing.B) {
		s := act.New(act.Config{})
		left := b.N
		var next act.Action
		next = act.Func(func(t *act.Task) act.Directive {
			if left--; left < 0 {
				return act.Done
			}
			t.Scheduler().Spawn(coro.New(func(*coro.Co) error { t.Scheduler().Spawn(next); return nil }))
			return act.Done
		})
		s.Spawn(next)
		b.ReportAllocs()
		b.ResetTimer()
		require.NoError(b, s.Run())
		require.NoError(b, s.Close())
	})
	b.Run("made", func(b *testing.B) {
		s := act.New(act.Config{})
		b.ReportAllocs()
		for b.Loop() {
			s.Spawn(coro.New(func(*coro.Co) error { return nil }))
			_ = s.Run()
		}
		require.NoError(b, s.Close())
	})
}

// BenchmarkMany is BenchmarkSwitch with so many coroutines that their stacks do not fit the nearest cache.
func BenchmarkMany(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, over := act.New(act.Config{}), false
			for range n {
				s.Spawn(coro.New(func(co *coro.Co) error {
					for !over {
						if err := co.Yield(); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_, err := s.Step(n)
			require.NoError(b, err)
			b.ResetTimer()
			_, _ = s.Step(b.N)
			b.StopTimer()
			over = true
			require.NoError(b, s.Run())
			require.NoError(b, s.Close())
		})
	}
}
