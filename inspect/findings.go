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
func (r *report) find(before *report) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, s := range r.Schedulers {
		if s.Late > 0 && s.State != "not running" {
			say("Scheduler %d does not answer: it is %s. Its figures are %v old.", s.Index, s.State, round(s.Late))
		}
	}
	if before != nil {
		r.seen = before.seen
	}
	if slices.ContainsFunc(r.Schedulers, func(s *scheduler) bool { return len(s.tasks)+len(s.processes) > 0 }) { // they were asked for
		r.poll(r.seen)
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
	rest     time.Duration  // until the next poll, if nobody asks for tasks
	findings []string       // about tasks and processes
	turns    map[mark]count // of each task
}

// mark is a task. Another one may have its id later.
type mark struct {
	scheduler int
	id, born  uint32
}

// count is how many turns a task had had when its scheduler had run for so long.
type count struct {
	turns  uint64
	uptime time.Duration
}

// poll makes r.seen, and compares it with what was seen before, nil if nothing was.
func (r *report) poll(before *seen) {
	if before == nil {
		before = &seen{}
	}
	n := 0
	for _, s := range r.Schedulers {
		n += len(s.tasks) + len(s.processes)
	}
	r.seen = &seen{at: r.Time, rest: max(ofTasks, time.Duration(n)*ofATask), turns: map[mark]count{}}
	say := func(format string, args ...any) {
		r.seen.findings = append(r.seen.findings, fmt.Sprintf(format, args...))
	}
	r.findTasks(before, say)
	r.findFull(say)
}

// worst is the worst of n tasks of a kind of which the same is found.
type worst struct {
	kind, what string // what is "" of tasks that have many turns
	n          int
	task       *task
	amount     float64 // how long, or how often
}

// findTasks says what many tasks of one kind have in common once.
func (r *report) findTasks(before *seen, say func(string, ...any)) {
	var found []*worst
	note := func(t *task, what string, amount float64) {
		i := slices.IndexFunc(found, func(w *worst) bool { return w.kind == t.Kind && w.what == what })
		if i < 0 {
			i, found = len(found), append(found, &worst{kind: t.Kind, what: what})
		}
		if w := found[i]; w.task == nil || amount > w.amount {
			w.task, w.amount = t, amount
		}
		found[i].n++
	}
	for _, s := range r.Schedulers {
		for i := range s.tasks {
			t := &s.tasks[i]
			m := mark{t.Scheduler, t.ID, t.born}
			r.seen.turns[m] = count{t.turns, s.Uptime}
			if was, ok := before.turns[m]; ok && s.Uptime > was.uptime {
				if rate := float64(t.turns-was.turns) / (s.Uptime - was.uptime).Seconds(); rate > muchTurns {
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
	for _, w := range found {
		tasks, has, takes := plural(w.n, "task"), "has", "takes"
		if w.n > 1 {
			has, takes = "have", "take"
		}
		name := w.task.number()
		if w.task.Peer != "" {
			name += " of " + w.task.Peer
		}
		if w.what == "" {
			say("%s of %s %s up to %.0f turns a second: %s, which yields, wakes itself, or has events without a pause.",
				tasks, w.kind, takes, w.amount, name)
			continue
		}
		long := time.Duration(w.amount * float64(time.Second))
		say("%s of %s %s been %s for up to %v: %s.", tasks, w.kind, has, w.what, round(long), name)
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
