package main

import (
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/tasklet"
)

// tasklets is written in phases, each of which says where the next one runs. Calls that block are in ASYNC phases, on a
// goroutine of the executor; shared data is used in SYNC phases only, on the scheduler's thread.
func tasklets(s *act.Scheduler, a, b string, report func([]string, error)) {
	ts := tasklet.RunnerOf(s)
	m := &merging{report: report}
	m.resume = ts.Suspend(m) // until both lists are there
	for _, address := range []string{a, b} {
		if err := ts.Schedule(&fetching{address: address, m: m}, tasklet.Async); err != nil {
			report(nil, err)
			return
		}
	}
}

type fetching struct {
	address string
	text    []byte
	err     error
	fetched bool
	m       *merging
}

func (f *fetching) Task(*tasklet.Runner) tasklet.Directive {
	if !f.fetched { // ASYNC
		f.fetched = true
		f.text, f.err = read(f.address)
		return tasklet.Sync
	}
	f.m.lists = append(f.m.lists, f.text) // SYNC
	f.m.err = errors.Join(f.m.err, f.err)
	if len(f.m.lists) == 2 {
		_ = f.m.resume.Resume(tasklet.Sync)
	}
	return tasklet.Done
}

type merging struct {
	lists  [][]byte
	err    error
	resume tasklet.Rescheduler
	report func([]string, error)
}

func (m *merging) Task(*tasklet.Runner) tasklet.Directive {
	if m.err != nil {
		m.report(nil, m.err)
	} else {
		m.report(merge(m.lists[0], m.lists[1]), nil)
	}
	return tasklet.Done
}

// read reads a list. It blocks for patience at most.
func read(address string) ([]byte, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	until := time.Now().Add(patience)
	c, err := (&net.Dialer{Deadline: until}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(until)
	text, err := io.ReadAll(io.LimitReader(c, most+1))
	if err == nil && len(text) > most {
		err = errTooMuch
	}
	return text, err
}
