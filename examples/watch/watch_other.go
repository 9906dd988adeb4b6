//go:build !linux

package main

import (
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

func watchFolder(*act.Scheduler, string) (*monitor.Watched, error) {
	return nil, errors.New("inotify and pidfd are Linux's; kqueue has filters for the like, which package monitor does not use")
}

func watchChild(*act.Scheduler, []string, func(error)) error { return errors.ErrUnsupported }
