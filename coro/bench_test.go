package coro_test

import (
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
