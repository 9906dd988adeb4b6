package inspect

import (
	"fmt"
	"strings"
	"time"
)

// From when on something is a finding.
const (
	longWait  = 10 * time.Second
	longReady = time.Second
	muchTurns = 10_000 // turns a second of one task
)

// find returns what is striking in a Report, in sentences; before is an earlier one, or nil.
func (r *Report) find(before *Report, places int) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, s := range r.Schedulers {
		if s.Late > 0 && s.State != "not running" {
			say("Scheduler %d has not answered for %v: it is %s.", s.Index, round(s.Late), s.State)
		}
	}
	sum := r.Sum()
	if n := sum.Counts["offloads"]; places > 0 && n > uint64(places) {
		say("%d functions are offloaded, and only %d can run at a time: the others wait.", n, places)
	}
	r.findTasks(sum.Tasks, say)
	for _, p := range sum.Processes {
		if p.Limit > 0 && p.Mailbox >= p.Limit {
			say("The mailbox of process %d (%s) is full: %d messages.", p.ID, p.Kind, p.Mailbox)
		}
	}
	if before != nil {
		r.findRates(before, say)
	}
	return all
}

// findTasks says what many tasks of one kind have in common once.
func (r *Report) findTasks(tasks []Task, say func(string, ...any)) {
	type group struct {
		kind, what string
	}
	counts, longest := map[group]int{}, map[group]*Task{}
	var order []group
	note := func(g group, t *Task) {
		if counts[g]++; counts[g] == 1 {
			order = append(order, g)
			longest[g] = t
		} else if t.still() > longest[g].still() {
			longest[g] = t
		}
	}
	for i := range tasks {
		t := &tasks[i]
		switch {
		case t.State == "ready" && t.Since > longReady && !t.Demon:
			note(group{t.Kind, "ready, without a turn"}, t)
		case t.Queued > 0 && t.Still > longWait:
			note(group{t.Kind, "with a peer that does not read"}, t)
		case t.State == "waiting" && len(t.Waits) == 0 && t.Since > longWait && !t.Demon:
			note(group{t.Kind, "waiting for nothing that is known"}, t)
		}
	}
	for _, g := range order {
		t := longest[g]
		peer := ""
		if t.Peer != "" {
			peer = " of " + t.Peer
		}
		say("%s of %s %s, for %v at the longest: %d/%d%s.", plural(counts[g], "task"), g.kind, g.what, round(t.still()),
			t.Scheduler, t.ID, peer)
	}
}

// still is for how long nothing has happened.
func (t *Task) still() time.Duration {
	if t.Queued > 0 {
		return t.Still
	}
	return t.Since
}

// findRates compares two Reports.
func (r *Report) findRates(before *Report, say func(string, ...any)) {
	const full, free = 0.98, 0.5
	var busy []int
	idle := false
	for i, s := range r.Schedulers {
		if i >= len(before.Schedulers) || s.Late > 0 {
			continue
		}
		was := before.Schedulers[i]
		passed := s.Uptime - was.Uptime
		if passed <= 0 {
			continue
		}
		load := 1 - float64(s.Idle-was.Idle)/float64(passed)
		if load > full {
			busy = append(busy, s.Index)
		}
		idle = idle || load < free
		kinds := map[string]uint64{}
		for _, k := range was.Kinds {
			kinds[k.Name] = k.Turns
		}
		for _, k := range s.Kinds {
			if rate := float64(k.Turns-kinds[k.Name]) / passed.Seconds(); k.Alive > 0 && rate > muchTurns*float64(k.Alive) {
				say("On scheduler %d tasks of %s take %.0f turns a second each: they yield, or wake themselves, all the time.",
					s.Index, k.Name, rate/float64(k.Alive))
			}
		}
	}
	if len(busy) > 0 && idle {
		say("Scheduler %s works without a pause, and another one is idle most of the time.", strings.Trim(fmt.Sprint(busy), "[]"))
	}
}
