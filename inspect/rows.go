package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
)

// rows are of one sort, of which each scheduler has some. They are described here once, for tables and for /metrics.
type rows[R any] struct {
	title   string // of the table
	label   string // in /metrics, whose value is the name of a row; the first column of the table
	of      func(*scheduler) []R
	name    func(*R) string
	figures []figure[R]
}

// figure is a column of a table, a metric, or both.
type figure[R any] struct {
	head   string // of the column
	metric string // "": none
	as     how
	of     func(*R) any // a number of type uint64 or a histogram, which add up over rows of one name, or a text
}

// how is a figure that is more than a number.
type how int

const (
	rated  how = iota + 1 // the column has another one beside it: how often it happens in a second
	common                // each scheduler has the same, so it is not added up
)

// summed is what the rows of one name have together.
type summed struct {
	name  string
	cells []any // of each figure
}

var kinds = rows[kindRow]{
	title: "kinds", label: "kind", of: func(s *scheduler) []kindRow { return s.Kinds }, name: func(k *kindRow) string { return k.Name },
	figures: []figure[kindRow]{
		{"ALIVE", "kind_tasks", 0, func(k *kindRow) any { return uint64(k.Alive) }},
		{"SPAWNED", "kind_spawned_total", 0, func(k *kindRow) any { return k.Spawned }},
		{"FAILED", "kind_failed_total", 0, func(k *kindRow) any { return k.Failed }},
		{"TURNS", "kind_turns_total", rated, func(k *kindRow) any { return k.Turns }},
		{"WOKEN", "kind_woken_total", rated, func(k *kindRow) any { return k.Woken }},
		{"TURN", "kind_turn_seconds", 0, func(k *kindRow) any { return k.Took }},
		{"WAKE", "kind_wake_seconds", 0, func(k *kindRow) any { return k.Wakes }},
	},
}

var services = rows[facts.Service]{
	title: "services", label: "service", of: func(s *scheduler) []facts.Service { return s.Services }, name: func(v *facts.Service) string { return v.Name },
	figures: []figure[facts.Service]{
		{"OPEN", "service_connections", common, func(v *facts.Service) any { return uint64(v.Open) }},
		{"MAX", "service_connections_max", common, func(v *facts.Service) any { return uint64(v.Max) }},
		{"ACCEPTED", "service_accepted_total", rated, func(v *facts.Service) any { return v.Accepted }},
		{"REFUSED", "service_refused_total", 0, func(v *facts.Service) any { return v.Refused }},
		{"TOO MANY", "service_too_many_total", 0, func(v *facts.Service) any { return v.TooMany }},
		{"TOO FAST", "service_too_fast_total", 0, func(v *facts.Service) any { return v.TooFast }},
		{"EVICTED", "service_evicted_total", 0, func(v *facts.Service) any { return v.Evicted }},
		{"FAILED", "service_failed_total", 0, func(v *facts.Service) any { return v.Failed }},
		{"GONE", "service_gone_total", 0, func(v *facts.Service) any { return v.Gone }},
		{"PAUSES", "service_pauses_total", 0, func(v *facts.Service) any { return v.Full }},
		{"SHORTAGES", "service_shortages_total", 0, func(v *facts.Service) any { return v.Shortages }},
	},
}

var packets = rows[facts.Packets]{
	title: "packets", label: "service", of: func(s *scheduler) []facts.Packets { return s.Packets },
	name: func(v *facts.Packets) string { return v.Name },
	figures: []figure[facts.Packets]{
		{"PEERS", "service_peers", 0, func(v *facts.Packets) any { return uint64(v.Peers) }},
		{"RECEIVED", "service_packets_received_total", rated, func(v *facts.Packets) any { return v.Received }},
		{"SENT", "service_packets_sent_total", rated, func(v *facts.Packets) any { return v.Sent }},
		{"DROPPED", "service_packets_dropped_total", 0, func(v *facts.Packets) any { return v.Dropped }},
		{"TOO FAST", "service_packets_too_fast_total", 0, func(v *facts.Packets) any { return v.TooFast }},
		{"LOST", "service_packets_lost_total", 0, func(v *facts.Packets) any { return v.Lost }},
		{"LATE", "service_packets_late_total", 0, func(v *facts.Packets) any { return v.Late }},
		{"FULL", "service_packets_full_total", 0, func(v *facts.Packets) any { return v.Full }},
		{"REFUSED", "service_packets_refused_total", 0, func(v *facts.Packets) any { return v.Refused }},
		{"EVICTED", "service_peers_evicted_total", 0, func(v *facts.Packets) any { return v.Evicted }},
		{"PANICS", "service_panics_total", 0, func(v *facts.Packets) any { return v.Panics }},
	},
}

var engines = rows[facts.Stages]{
	title: "engines", label: "engine", of: func(s *scheduler) []facts.Stages { return s.Stages }, name: func(v *facts.Stages) string { return v.Worker },
	figures: []figure[facts.Stages]{
		{"RUNNING", "stages_running", 0, func(v *facts.Stages) any { return uint64(len(v.Running)) }},
		{"WORKERS", "stages_workers", 0, func(v *facts.Stages) any { return uint64(v.Workers) }},
		{"CLAIMED", "stages_claimed_total", 0, func(v *facts.Stages) any { return v.Claimed }},
		{"FINISHED", "stages_finished_total", 0, func(v *facts.Stages) any { return v.Finished }},
		{"FAILED", "stages_failed_total", 0, func(v *facts.Stages) any { return v.Failed }},
		{"SUSPENDED", "stages_suspended_total", 0, func(v *facts.Stages) any { return v.Suspended }},
		{"LOST", "stages_lost_leases_total", 0, func(v *facts.Stages) any { return v.Lost }},
		{"WORKS ON", "", 0, func(v *facts.Stages) any { return strings.Join(v.Kinds, ", ") }},
		{"WAITS FOR", "", 0, func(v *facts.Stages) any { return strings.Join(v.Waits, ", ") }},
	},
}

var routes = rows[facts.Route]{
	title: "routes", label: "route", of: func(s *scheduler) []facts.Route { return s.Routes }, name: func(v *facts.Route) string { return v.Name },
	figures: []figure[facts.Route]{
		{"GROUP", "", 0, func(v *facts.Route) any { return v.Group }},
		{"ACTIVE", "gateway_route_active", 0, func(v *facts.Route) any { return v.Active }},
		{"REQUESTS", "gateway_route_requests_total", rated, func(v *facts.Route) any { return v.Requests }},
		{"FAILED", "gateway_route_failed_total", 0, func(v *facts.Route) any { return v.Failed }},
		{"RETRIES", "gateway_route_retries_total", 0, func(v *facts.Route) any { return v.Retries }},
	},
}

var backends = rows[facts.Backend]{
	title: "backends", label: "backend", of: func(s *scheduler) []facts.Backend { return s.Backends },
	name: func(v *facts.Backend) string { return v.Name },
	figures: []figure[facts.Backend]{
		{"STATE", "", 0, func(v *facts.Backend) any { return v.State }},
		{"ACTIVE", "gateway_backend_active", 0, func(v *facts.Backend) any { return v.Active }},
		{"REQUESTS", "gateway_backend_requests_total", rated, func(v *facts.Backend) any { return v.Requests }},
		{"FAILED", "gateway_backend_failed_total", 0, func(v *facts.Backend) any { return v.Failed }},
		{"OUTS", "gateway_backend_outs_total", 0, func(v *facts.Backend) any { return v.Outs }},
		{"MS", "gateway_backend_milliseconds_total", rated, func(v *facts.Backend) any { return uint64(v.Took.Milliseconds()) }},
	},
}

// number returns the figure i, 0 of nil.
func (s *summed) number(i int) uint64 {
	if s == nil {
		return 0
	}
	return s.cells[i].(uint64)
}

// sum returns what the rows of all schedulers have, in the order of their names.
func (x *rows[R]) sum(r *report) (all []*summed) {
	byName := map[string]*summed{}
	for _, s := range r.latest() {
		for _, row := range x.of(s) {
			to := byName[x.name(&row)]
			if to == nil {
				to = &summed{x.name(&row), make([]any, len(x.figures))}
				byName[to.name], all = to, append(all, to)
			}
			for i, f := range x.figures {
				to.cells[i] = f.add(to.cells[i], f.of(&row))
			}
		}
	}
	slices.SortFunc(all, func(a, b *summed) int { return strings.Compare(a.name, b.name) })
	return all
}

// add returns what two rows have together; to is nil for the first one.
func (f *figure[R]) add(to, more any) any {
	switch n := to.(type) {
	case uint64:
		if f.as != common {
			return n + more.(uint64)
		}
	case histogram:
		more := more.(histogram)
		n.merge(&more)
		return n
	case nil:
		return more
	}
	return to
}

// table returns the rows, with rates of a time that has passed since before.
func (x *rows[R]) table(r, before *report, passed time.Duration) *table {
	heads := []string{strings.ToUpper(x.label)}
	for _, f := range x.figures {
		switch _, timed := f.of(new(R)).(histogram); {
		case timed:
			heads = append(heads, f.head+" p50", "p99", "MAX")
		case f.as == rated:
			heads = append(heads, f.head, "/s")
		default:
			heads = append(heads, f.head)
		}
	}
	was := map[string]*summed{}
	for _, row := range x.sum(before) {
		was[row.name] = row
	}
	t := newTable(x.title, heads...)
	for _, row := range x.sum(r) {
		cells := []any{row.name}
		for i, cell := range row.cells {
			switch v := cell.(type) {
			case histogram:
				cells = append(cells, quantile(&v, 0.5), quantile(&v, 0.99), quantile(&v, 1))
			default:
				if cells = append(cells, v); x.figures[i].as == rated {
					cells = append(cells, rate(row.number(i), was[row.name].number(i), passed))
				}
			}
		}
		t.add(cells...)
	}
	return t
}

// latest returns the schedulers, the latest answer first: each has what is common to all as of its answer.
func (r *report) latest() []*scheduler {
	return slices.SortedStableFunc(slices.Values(r.Schedulers), func(a, b *scheduler) int { return cmp.Compare(a.Late, b.Late) })
}

// counts returns the counts of all schedulers together.
func (r *report) counts() map[string]uint64 {
	all := map[string]uint64{}
	for _, s := range r.Schedulers {
		for name, n := range s.Counts {
			all[name] += n
		}
	}
	return all
}

// page returns what people want to see first. Loads, rates and the latencies of schedulers are of the time since before, nil for
// the start.
func (r *report) page(before *report) *page {
	over := "the time since the start"
	if before == nil {
		before = &report{}
	} else {
		over = "the last " + r.Time.Sub(before.Time).Round(10*time.Millisecond).String()
	}
	counts := r.counts()
	there := plural(len(r.Schedulers), "scheduler") + ", " + plural(int(counts["tasks"]), "task")
	if n := counts["processes"]; n > 0 {
		there += fmt.Sprintf(", processes: %d", n)
	}
	p := &page{Findings: r.Findings}
	p.Title = fmt.Sprintf("%s: %s; loads, rates (/s) and latencies of schedulers are of %s", r.Time.UTC().Format(time.RFC3339), there, over)
	schedulers, passed := r.schedulerTable(before)
	p.Tables = []*table{
		schedulers, services.table(r, before, passed), packets.table(r, before, passed), kinds.table(r, before, passed), engines.table(r, before, passed),
		routes.table(r, before, passed), backends.table(r, before, passed), r.Stalls.table(),
		countTable(counts, before.counts(), passed),
	}
	return p
}

func countTable(now, before map[string]uint64, passed time.Duration) *table {
	t := newTable("counts", "COUNT", "N", "/s", "WHAT")
	for _, name := range slices.Sorted(maps.Keys(now)) {
		often := ""
		if strings.HasSuffix(name, "_total") {
			often = rate(now[name], before[name], passed)
		}
		t.add(name, now[name], often, help[name])
	}
	return t
}

// schedulerTable also returns how much time has passed for them since before, on average.
func (r *report) schedulerTable(before *report) (_ *table, passed time.Duration) {
	t := newTable("schedulers", "SCHEDULER", "TASKS", "READY", "TURNS/s", "LOAD", "ASLEEP", "PAUSING", "POLLING", "TURN p50", "p99",
		"WAKE p50", "p99", "STATE")
	for i, s := range r.Schedulers {
		state := s.State
		if s.Ends != nil {
			state += ", " + s.Ends.String()
		}
		if s.Late > 0 {
			state += fmt.Sprintf(" (no answer; as of %v ago)", round(s.Late))
		}
		was := &scheduler{}
		if i < len(before.Schedulers) {
			was = before.Schedulers[i]
		}
		over := s.Uptime - was.Uptime
		passed += over
		turns, wakes := s.Turns.since(&was.Turns), s.Wakes.since(&was.Wakes)
		t.add(s.Index, s.Counts["tasks"], s.Counts["ready"], rate(s.Counts["turns_total"], was.Counts["turns_total"], over),
			percent(over-s.Idle.all()+was.Idle.all(), over), percent(s.Idle.Asleep-was.Idle.Asleep, over),
			percent(s.Idle.Pausing-was.Idle.Pausing, over), percent(s.Idle.Polling-was.Idle.Polling, over),
			quantile(&turns, 0.5), quantile(&turns, 0.99), quantile(&wakes, 0.5), quantile(&wakes, 0.99), state)
	}
	return t, passed / time.Duration(max(1, len(r.Schedulers)))
}

func (all *stalls) table() *table {
	t := newTable("stalls", "STALL", "SCHEDULER", "LASTED", "CAUSE", "AT", "KIND", "TASK", "PEER")
	for _, s := range all.Last {
		lasted := fmt.Sprint(round(s.Lasted))
		if !s.Ended {
			lasted += ", so far"
		}
		t.add(s.Began.UTC().Format(time.RFC3339), s.Scheduler, lasted, s.why(), s.At, s.Kind, s.Task, s.Peer)
	}
	if d := &all.Durations; len(all.Last) > 0 {
		t.note("ended since the start: %s, p50 %s, p99 %s, the longest %s", plural(int(d.count()), "stall"),
			quantile(d, 0.5), quantile(d, 0.99), quantile(d, 1))
	}
	if n := all.Suppressed; n > 0 {
		t.note("%s more had no line, because there were too many", plural(int(n), "stall"))
	}
	if n := all.Late; n > 0 {
		t.note("the watchdog was late %s, by up to %v: stalls meanwhile are not seen", plural(int(n), "time"), round(all.Latest))
	}
	return t
}
