package inspect

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// metrics are written in the text format of Prometheus, version 0.0.4, which wants all samples of a name together.
type metrics struct {
	names   []string // in the order of their first samples
	samples map[string][]string
}

// writeMetrics writes what a system of metrics collects: of each scheduler, and of each kind, service and stage engine.
func (r *Report) writeMetrics(out io.Writer) {
	m := &metrics{samples: map[string][]string{}}
	for _, s := range r.Schedulers {
		label := labels("scheduler", strconv.Itoa(s.Index))
		m.add("uptime_seconds_total", label, s.Uptime.Seconds())
		m.add("idle_seconds_total", label+","+labels("how", "asleep"), s.Idle.Asleep.Seconds())
		m.add("idle_seconds_total", label+","+labels("how", "pausing"), s.Idle.Pausing.Seconds())
		m.add("idle_seconds_total", label+","+labels("how", "looking"), s.Idle.Looking.Seconds())
		m.add("answer_age_seconds", label, s.Late.Seconds())
		for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
			m.add(name, label, float64(s.Counts[name]))
		}
		m.histogram("turn_seconds", label, &s.Turns)
		m.histogram("wake_seconds", label, &s.Wakes)
	}
	m.add("stalls_reported_total", "", float64(r.Stalls.Reported))
	m.add("stalls_suppressed_total", "", float64(r.Stalls.Suppressed))
	m.add("recordings_written_total", "", float64(r.Recordings.Written))
	m.add("recordings_suppressed_total", "", float64(r.Recordings.Suppressed))
	m.add("recordings_failed_total", "", float64(r.Recordings.Failed))
	m.histogram("stall_seconds", "", &r.Stalls.Durations)
	m.add("watchdog_late_total", "", float64(r.Stalls.Late))
	all := r.Sum()
	for _, k := range all.Kinds {
		label := labels("kind", k.Name)
		m.add("kind_tasks", label, float64(k.Alive))
		m.add("kind_spawned_total", label, float64(k.Spawned))
		m.add("kind_failed_total", label, float64(k.Failed))
		m.add("kind_turns_total", label, float64(k.Turns))
		m.add("kind_woken_total", label, float64(k.Woken))
		m.histogram("kind_turn_seconds", label, &k.Took)
		m.histogram("kind_wake_seconds", label, &k.Wakes)
	}
	for _, v := range all.Services {
		label := labels("service", v.Name)
		m.add("service_connections", label, float64(v.Open))
		m.add("service_connections_max", label, float64(v.Max))
		m.add("service_accepted_total", label, float64(v.Accepted))
		m.add("service_pauses_total", label, float64(v.Full))
		m.add("service_shortages_total", label, float64(v.Shortages))
		m.add("service_refused_total", label, float64(v.Refused))
		m.add("service_too_many_total", label, float64(v.TooMany))
		m.add("service_too_fast_total", label, float64(v.TooFast))
		m.add("service_reclaimed_total", label, float64(v.Reclaimed))
		m.add("service_gone_total", label, float64(v.Gone))
		m.add("service_failed_total", label, float64(v.Failed))
	}
	for _, v := range all.Stages {
		label := labels("engine", v.Worker)
		m.add("stages_workers", label, float64(v.Workers))
		m.add("stages_running", label, float64(len(v.Running)))
		m.add("stages_claimed_total", label, float64(v.Claimed))
		m.add("stages_finished_total", label, float64(v.Finished))
		m.add("stages_failed_total", label, float64(v.Failed))
		m.add("stages_suspended_total", label, float64(v.Suspended))
		m.add("stages_lost_leases_total", label, float64(v.Lost))
	}
	m.write(out)
}

func (m *metrics) add(name, labels string, value float64) {
	m.sample(name, name+"{"+labels+"} "+strconv.FormatFloat(value, 'g', -1, 64))
}

func (m *metrics) sample(name, line string) {
	if m.samples[name] == nil {
		m.names = append(m.names, name)
	}
	m.samples[name] = append(m.samples[name], line)
}

// histogram adds the bounds of h in seconds, each with the number of all durations below.
func (m *metrics) histogram(name, labels string, h *Histogram) {
	first := ""
	if labels != "" {
		first = labels + ","
	}
	below := uint64(0)
	for i, n := range h.Buckets {
		below += n
		bound := "+Inf"
		if b := h.bound(i); b > 0 {
			bound = strconv.FormatFloat(b.Seconds(), 'g', -1, 64)
		}
		m.sample(name, fmt.Sprintf("%s_bucket{%sle=%q} %d", name, first, bound, below))
	}
	m.sample(name, fmt.Sprintf("%s_sum{%s} %s", name, labels, strconv.FormatFloat(h.Sum.Seconds(), 'g', -1, 64)))
	m.sample(name, fmt.Sprintf("%s_count{%s} %d", name, labels, below))
}

func (m *metrics) write(out io.Writer) {
	for _, name := range m.names {
		kind := "gauge"
		switch {
		case strings.HasSuffix(name, "_total"):
			kind = "counter"
		case strings.HasPrefix(m.samples[name][0], name+"_bucket"):
			kind = "histogram"
		}
		fmt.Fprintf(out, "# HELP daimon_%s %s\n# TYPE daimon_%[1]s %[3]s\n", name, help[name], kind)
		for _, line := range m.samples[name] {
			fmt.Fprintf(out, "daimon_%s\n", line)
		}
	}
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labels(name, value string) string { return name + `="` + escape.Replace(value) + `"` }
