package demon_test

import (
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepped returns a scheduler on a clock of the test's, and what it logs.
func stepped(t *testing.T) (*act.Scheduler, *servertest.Clock, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	c := &servertest.Clock{}
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
