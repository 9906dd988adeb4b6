package demon_test

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a Clock that only the test moves.
type clock struct{ now atomic.Int64 }

func (c *clock) Monotonic() time.Duration { return time.Duration(c.now.Load()) }
func (c *clock) Wall() time.Time          { return time.Unix(0, c.now.Load()) }
func (c *clock) move(d time.Duration)     { c.now.Add(int64(d)) }

// stepped returns a scheduler on a clock of the test's, and what it logs.
func stepped(t *testing.T) (*act.Scheduler, *clock, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	c := &clock{}
	s := act.New(act.Config{Clock: c, Logger: zap.New(core)})
	t.Cleanup(func() { _ = s.Close() })
	return s, c, logs
}

// runElsewhere runs s on another goroutine until the test ends or is told.
func runElsewhere(t *testing.T, s *act.Scheduler) (ended <-chan error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- s.Run() }()
	t.Cleanup(func() { s.Shutdown(servertest.Cut) })
	return result
}
