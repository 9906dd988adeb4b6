package inspect

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// writeText writes what a person wants to see first. Loads, rates and the latencies of schedulers are of the time since before,
// nil for the start.
func (r *Report) writeText(out io.Writer, before *Report) {
	all, was, over := r.Sum(), &Scheduler{}, "the time since the start"
	if before != nil {
		was, over = before.Sum(), "the last "+r.Time.Sub(before.Time).Round(10*time.Millisecond).String()
	}
	there := plural(len(r.Schedulers), "scheduler") + ", " + plural(int(all.Counts["tasks"]), "task")
	if n := all.Counts["processes"]; n > 0 {
		there += fmt.Sprintf(", processes: %d", n)
	}
	fmt.Fprintf(out, "%s: %s; loads, rates (/s) and latencies of schedulers are of %s\n", r.Time.UTC().Format(time.RFC3339), there, over)
	r.writeFindings(out)
	rows := table(out, "SCHEDULER", "TASKS", "READY", "TURNS/s", "LOAD", "ASLEEP", "PAUSING", "LOOKING", "TURN p50", "p99",
		"WAKE p50", "p99", "STATE")
	for i, s := range r.Schedulers {
		state := s.State
		if s.Ends != nil {
			state += ", " + s.Ends.String()
		}
		if s.Late > 0 {
			state += fmt.Sprintf(" (no answer; as of %v ago)", round(s.Late))
		}
		was := &Scheduler{}
		if before != nil && i < len(before.Schedulers) {
			was = before.Schedulers[i]
		}
		passed := s.Uptime - was.Uptime
		turns, wakes := s.Turns.since(&was.Turns), s.Wakes.since(&was.Wakes)
		rows.add(s.Index, s.Counts["tasks"], s.Counts["ready"], rate(s.Counts["turns_total"], was.Counts["turns_total"], passed),
			percent(passed-s.Idle.All()+was.Idle.All(), passed), percent(s.Idle.Asleep-was.Idle.Asleep, passed),
			percent(s.Idle.Pausing-was.Idle.Pausing, passed), percent(s.Idle.Looking-was.Idle.Looking, passed),
			quantile(&turns, 0.5), quantile(&turns, 0.99), quantile(&wakes, 0.5), quantile(&wakes, 0.99), state)
	}
	rows.end()
	passed := all.Uptime - was.Uptime // of all schedulers together
	if n := len(r.Schedulers); n > 0 {
		passed /= time.Duration(n)
	}
	if len(all.Services) > 0 {
		accepted := map[string]uint64{}
		for _, v := range was.Services {
			accepted[v.Name] = v.Accepted
		}
		rows := table(out, "SERVICE", "OPEN", "MAX", "ACCEPTED", "/s", "REFUSED", "TOO MANY", "TOO FAST", "RECLAIMED", "FAILED",
			"GONE", "PAUSES", "SHORTAGES")
		for _, v := range all.Services {
			rows.add(v.Name, v.Open, v.Max, v.Accepted, rate(v.Accepted, accepted[v.Name], passed), v.Refused, v.TooMany, v.TooFast,
				v.Reclaimed, v.Failed, v.Gone, v.Full, v.Shortages)
		}
		rows.end()
	}
	kinds := map[string]Kind{}
	for _, k := range was.Kinds {
		kinds[k.Name] = k
	}
	rows = table(out, "KIND", "ALIVE", "SPAWNED", "FAILED", "TURNS", "/s", "WOKEN", "/s", "TURN p50", "p99", "MAX", "WAKE p50", "p99", "MAX")
	for _, k := range all.Kinds {
		was := kinds[k.Name]
		rows.add(k.Name, k.Alive, k.Spawned, k.Failed, k.Turns, rate(k.Turns, was.Turns, passed), k.Woken, rate(k.Woken, was.Woken, passed),
			quantile(&k.Took, 0.5), quantile(&k.Took, 0.99), quantile(&k.Took, 1),
			quantile(&k.Wakes, 0.5), quantile(&k.Wakes, 0.99), quantile(&k.Wakes, 1))
	}
	rows.end()
	if len(all.Stages) > 0 {
		rows := table(out, "ENGINE", "RUNNING", "WORKERS", "CLAIMED", "FINISHED", "FAILED", "SUSPENDED", "LOST", "WAITS FOR")
		for _, v := range all.Stages {
			rows.add(v.Worker, len(v.Running), v.Workers, v.Claimed, v.Finished, v.Failed, v.Suspended, v.Lost,
				strings.Join(v.Waits, ", "))
		}
		rows.end()
	}
	if len(r.Stalls.Last) > 0 {
		rows := table(out, "STALL", "SCHEDULER", "LASTED", "CAUSE", "AT", "KIND", "TASK", "PEER")
		for _, s := range r.Stalls.Last {
			lasted := fmt.Sprint(round(s.Lasted))
			if !s.Ended {
				lasted += ", so far"
			}
			rows.add(s.Began.UTC().Format(time.RFC3339), s.Scheduler, lasted, s.why(), s.At, s.Kind, s.Task, s.Peer)
		}
		rows.end()
		d := &r.Stalls.Durations
		fmt.Fprintf(out, "%s have ended since the start: p50 %s, p99 %s, the longest %s\n", plural(int(d.count()), "stall"),
			quantile(d, 0.5), quantile(d, 0.99), quantile(d, 1))
	}
	if n := r.Stalls.Suppressed; n > 0 {
		fmt.Fprintf(out, "%s more had no line, because there were too many\n", plural(int(n), "stall"))
	}
	if n := r.Stalls.Late; n > 0 {
		fmt.Fprintf(out, "the watchdog was late %s, by up to %v: stalls meanwhile are not seen\n", plural(int(n), "time"), round(r.Stalls.Latest))
	}
	rows = table(out, "COUNT", "N", "/s", "WHAT")
	for _, name := range slices.Sorted(maps.Keys(all.Counts)) {
		often := ""
		if strings.HasSuffix(name, "_total") {
			often = rate(all.Counts[name], was.Counts[name], passed)
		}
		rows.add(name, all.Counts[name], often, help[name])
	}
	rows.end()
}

func (r *Report) writeFindings(out io.Writer) {
	for _, f := range r.Findings {
		fmt.Fprintf(out, "! %s\n", f)
	}
}

// writeTasks writes findings, and the tasks and processes with find in one of their columns.
func (r *Report) writeTasks(out io.Writer, find string) {
	r.writeFindings(out)
	rows := table(out, "TASK", "STATE", "AGE", "LAST TURN", "KIND", "NAME", "PEER", "WAITS FOR")
	for t := range r.tasks() {
		if t.has(find) {
			rows.add(t.number(), t.state(), round(t.Age), round(t.Since), t.Kind, t.Name, t.Peer, t.waits())
		}
	}
	rows.end()
	rows = columns{}
	for p := range r.processes() {
		if rows.out == nil {
			rows = table(out, "PROCESS", "STATE", "MAILBOX", "LIMIT", "DROPPED", "TURN", "KIND", "NAME")
		}
		if has(p, find) {
			rows.add(p.ID, p.State, p.Mailbox, p.Limit, p.Dropped, round(p.Turn), p.Kind, p.Name)
		}
	}
	if rows.out != nil {
		rows.end()
	}
}

// state is the State, and whether the task knows that it is to end.
func (t *Task) state() string {
	if t.Told {
		return t.State + ", told to end"
	}
	return t.State
}

// number is what findings and tables call the task.
func (t *Task) number() string { return fmt.Sprintf("%d/%d", t.Scheduler, t.ID) }

func (t *Task) has(find string) bool {
	return find == "" || strings.Contains(strings.Join([]string{t.number(), t.Name, t.Kind, t.state(), t.Peer, t.waits()}, " "), find)
}

func has(p *Process, find string) bool {
	number := fmt.Sprintf("process %d", p.ID) // as findings say it
	return find == "" || strings.Contains(strings.Join([]string{number, p.Name, p.Kind, p.State}, " "), find)
}

func (t *Task) waits() string {
	if t.State == "waiting" && len(t.Waits) == 0 {
		return "nothing that is known"
	}
	return strings.Join(t.Waits, ", ")
}

// columns are rows of a table in plain text.
type columns struct{ out *tabwriter.Writer }

func table(out io.Writer, heads ...any) columns {
	fmt.Fprintln(out)
	c := columns{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	c.add(heads...)
	return c
}

func (c columns) add(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(c.out, "\t")
		}
		fmt.Fprint(c.out, cell)
	}
	fmt.Fprintln(c.out)
}

func (c columns) end() { _ = c.out.Flush() }

// round leaves two or three digits of d.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// quantile returns a duration as text, a dash if there is none.
func quantile(h *Histogram, q float64) string {
	if h.count() == 0 {
		return "-"
	}
	return fmt.Sprint(round(h.quantile(q)))
}

// rate returns how often something has happened in a second, a dash if no time has passed.
func rate(now, before uint64, passed time.Duration) string {
	if passed <= 0 || now < before {
		return "-"
	}
	switch n := float64(now-before) / passed.Seconds(); {
	case n > 0 && n < 10:
		return fmt.Sprintf("%.2g", n)
	default:
		return fmt.Sprintf("%.0f", n)
	}
}

func percent(part, of time.Duration) string {
	if of <= 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", max(0, 100*part/of))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
