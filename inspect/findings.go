package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
)

// From when on something is a finding.
const (
	longWait  = 10 * time.Second
	muchTurns = 10_000 // a second
)

// find returns what needs attention in a Report, in sentences; before is an earlier one, or nil.
func (r *report) find(before *report, places int) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, s := range r.Schedulers {
		if s.Late > 0 && s.State != "not running" {
			say("Scheduler %d does not answer: it is %s. Its figures are %v old.", s.Index, s.State, round(s.Late))
		}
	}
	if n := r.counts()["offloads"]; places > 0 && n > uint64(places) {
		say("%d functions are offloaded, and only %d can run at a time: the others wait.", n, places)
	}
	if before != nil {
		r.seen = before.seen
	}
	if slices.ContainsFunc(r.Schedulers, func(s *scheduler) bool { return len(s.tasks)+len(s.processes) > 0 }) { // they were asked for
		r.look(r.seen)
	}
	if r.seen != nil && r.Time.Sub(r.seen.at) < 2*r.seen.rest {
		all = append(all, r.seen.findings...)
	}
	if before != nil {
		r.findRates(before, say)
	}
	return all
}

// seen is the result of a poll of tasks and processes, kept for the next poll and for the Reports until then.
type seen struct {
	at       time.Time
	rest     time.Duration   // until the next poll, if nobody asks for tasks
	findings []string        // about tasks and processes
	turns    map[mark]uint64 // of each task
	uptimes  []time.Duration // of each scheduler
}

// mark is a task. Another one may have its id later.
type mark struct {
	scheduler int
	id, born  uint32
}

// look makes r.seen, and compares it with what was seen before, nil if nothing was.
func (r *report) look(before *seen) {
	if before == nil {
		before = &seen{}
	}
	n := 0
	for _, s := range r.Schedulers {
		n += len(s.tasks) + len(s.processes)
	}
	r.seen = &seen{at: r.Time, rest: max(ofTasks, time.Duration(n)*ofATask), turns: map[mark]uint64{}}
	say := func(format string, args ...any) {
		r.seen.findings = append(r.seen.findings, fmt.Sprintf(format, args...))
	}
	r.findTasks(before, say)
	r.findFull(say)
}

// same is what is found of one or many tasks of a kind, which are said once.
type same struct {
	kind, what string
}

// worst is how many there are, and the worst of them.
type worst struct {
	n      int
	task   *task
	amount float64 // how long, or how often
}

// findTasks says what many tasks of one kind have in common once.
func (r *report) findTasks(before *seen, say func(string, ...any)) {
	found := map[same]*worst{}
	var order []same
	note := func(t *task, what string, amount float64) {
		w := found[same{t.Kind, what}]
		if w == nil {
			w = &worst{}
			found[same{t.Kind, what}] = w
			order = append(order, same{t.Kind, what})
		}
		if w.n++; w.n == 1 || amount > w.amount {
			w.task, w.amount = t, amount
		}
	}
	for i, s := range r.Schedulers {
		passed := time.Duration(0) // since the scheduler was seen before
		if r.seen.uptimes = append(r.seen.uptimes, s.Uptime); i < len(before.uptimes) {
			passed = s.Uptime - before.uptimes[i]
		}
		for j := range s.tasks {
			t := &s.tasks[j]
			m := mark{i, t.ID, t.born}
			r.seen.turns[m] = t.turns
			if was, ok := before.turns[m]; ok && passed > 0 {
				if rate := float64(t.turns-was) / passed.Seconds(); rate > muchTurns {
					note(t, "", rate)
				}
			}
			switch {
			case t.Queued > 0 && t.Stuck > longWait:
				note(t, "connected to a peer that does not read", t.Stuck.Seconds())
			case t.State == "waiting" && t.Since > longWait && !t.Demon:
				if what := t.waitsForNothing(); what != "" {
					note(t, what, t.Since.Seconds())
				}
			}
		}
	}
	for _, g := range order {
		w := found[g]
		t := w.task
		name := t.number()
		if t.Peer != "" {
			name += " of " + t.Peer
		}
		long := round(time.Duration(w.amount * float64(time.Second)))
		switch {
		case g.what != "" && w.n == 1:
			say("1 task of %s has been %s for up to %v: %s.", g.kind, g.what, long, name)
		case g.what != "":
			say("%d tasks of %s have been %s for up to %v: %s.", w.n, g.kind, g.what, long, name)
		case w.n == 1:
			say("1 task of %s takes %.0f turns a second: %s. It yields, wakes itself, or has events without a pause.",
				g.kind, w.amount, name)
		default:
			say("%d tasks of %s take up to %.0f turns a second: %s. They yield, wake themselves, or have events without a pause.",
				w.n, g.kind, w.amount, name)
		}
	}
}

// waitsForNothing says what a task waits for that nothing known can wake, or only the end of its peer, which httpd
// notices for each handler; otherwise it is "".
func (t *task) waitsForNothing() string {
	for _, w := range t.Waits {
		if !strings.HasPrefix(w, facts.EndOf) {
			return ""
		}
	}
	if len(t.Waits) > 0 {
		return "waiting for nothing that is known but the end of its peer"
	}
	return "waiting for nothing that is known"
}

// mostFull bounds the mailboxes that are named.
const mostFull = 10

// findFull says which mailboxes are full.
func (r *report) findFull(say func(string, ...any)) {
	n := 0
	for _, s := range r.Schedulers {
		for _, p := range s.processes {
			if p.Limit == 0 || p.Mailbox < p.Limit {
				continue
			}
			if n++; n <= mostFull {
				say("The mailbox of process %d (%s) is full: %d messages.", p.ID, p.Kind, p.Mailbox)
			}
		}
	}
	if n > mostFull {
		say("%d more mailboxes are full.", n-mostFull)
	}
}

// findRates compares two Reports.
func (r *report) findRates(before *report, say func(string, ...any)) {
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
		load := 1 - float64(s.Idle.all()-was.Idle.all())/float64(passed)
		if load > full {
			busy = append(busy, s.Index)
		}
		idle = idle || load < free
	}
	if len(busy) > 0 && idle {
		say("Scheduler %s works without a pause, and another one is idle most of the time.", strings.Trim(fmt.Sprint(busy), "[]"))
	}
}
