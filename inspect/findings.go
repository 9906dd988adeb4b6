package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// From when on something is a finding.
const (
	longWait  = 10 * time.Second
	longReady = time.Second
	muchTurns = 10_000 // turns a second of one task
)

// find returns what needs attention in a Report, in sentences; before is an earlier one, or nil.
func (r *Report) find(before *Report, places int) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, s := range r.Schedulers {
		if s.Late > 0 && s.State != "not running" {
			say("Scheduler %d does not answer: it is %s. Its figures are %v old.", s.Index, s.State, round(s.Late))
		}
	}
	offloads := uint64(0)
	for _, s := range r.Schedulers {
		offloads += s.Counts["offloads"]
	}
	if n := offloads; places > 0 && n > uint64(places) {
		say("%d functions are offloaded, and only %d can run at a time: the others wait.", n, places)
	}
	r.findTasks(before, say)
	r.findFull(before, say)
	if before != nil {
		r.findRates(before, say)
	}
	return all
}

// findTasks says what many tasks of one kind have in common once.
func (r *Report) findTasks(before *Report, say func(string, ...any)) {
	type group struct {
		kind, what string
	}
	if !slices.ContainsFunc(r.Schedulers, func(s *Scheduler) bool { return len(s.Tasks) > 0 }) { // they were not asked for
		if before != nil {
			r.ready = before.ready
		}
		return
	}
	r.ready = map[spell]time.Time{}
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
	for t := range r.tasks() {
		switch {
		case t.State == "ready" && !t.Demon:
			if t.ready = r.readyFor(before, t); t.ready > longReady {
				note(group{t.Kind, "ready without a turn"}, t)
			}
		case t.Queued > 0 && t.Still > longWait:
			note(group{t.Kind, "connected to a peer that does not read"}, t)
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
		have := "has"
		if counts[g] > 1 {
			have = "have"
		}
		say("%s of %s %s been %s for up to %v: %d/%d%s.", plural(counts[g], "task"), g.kind, have, g.what, round(t.still()),
			t.Scheduler, t.ID, peer)
	}
}

// still is for how long nothing has happened.
func (t *Task) still() time.Duration {
	switch {
	case t.State == "ready":
		return t.ready
	case t.Queued > 0:
		return t.Still
	}
	return t.Since
}

// spell is the time between two turns of a task.
type spell struct {
	scheduler int
	id        uint32
	born      uint32
	last      uint32
}

// readyFor returns for how long a task has been ready at least. When it became so is not known; but a task that was ready in an
// earlier Report, and has had no turn since, has been ready all the time.
func (r *Report) readyFor(before *Report, t *Task) time.Duration {
	of := spell{t.Scheduler, t.ID, t.born, t.last}
	since := r.Time
	if before != nil {
		if known, ok := before.ready[of]; ok {
			since = known
		}
	}
	r.ready[of] = since
	return r.Time.Sub(since)
}

// mailbox is that of a process. Of two systems of processes in one program, both may have the ID.
type mailbox struct {
	kind string
	id   uint64
}

// findFull says which mailboxes are full, and for how long each has been so whenever it was looked at. Nothing is kept for that
// but in Reports.
func (r *Report) findFull(before *Report, say func(string, ...any)) {
	var known map[mailbox]time.Time
	if before != nil {
		known = before.full
	}
	if !slices.ContainsFunc(r.Schedulers, func(s *Scheduler) bool { return len(s.Processes) > 0 }) {
		r.full = known // there are none, or they were not asked for
		return
	}
	r.full = map[mailbox]time.Time{}
	for p := range r.processes() {
		if p.Limit == 0 || p.Mailbox < p.Limit {
			continue
		}
		m := mailbox{p.Kind, p.ID}
		since, ok := known[m]
		if !ok {
			since = r.Time
		}
		r.full[m] = since
		if long := r.Time.Sub(since); long > 0 {
			say("The mailbox of process %d (%s) has been full at every look for %v: %d messages.", p.ID, p.Kind, round(long), p.Mailbox)
		} else {
			say("The mailbox of process %d (%s) is full: %d messages.", p.ID, p.Kind, p.Mailbox)
		}
	}
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
		load := 1 - float64(s.Idle.All()-was.Idle.All())/float64(passed)
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
