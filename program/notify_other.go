//go:build !linux

package program

import (
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// notifier is for systems with sd_notify(3).
type notifier struct{}

func newNotifier(*zap.Logger) *notifier { return nil }

func (*notifier) drain(shutdown.Drain)       {}
func (*notifier) setup(*act.Scheduler) error { return nil }
func (*notifier) close()                     {}
func (*notifier) reloading()                 {}
func (*notifier) reloaded()                  {}
