package inspect

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// metrics are written in the text format of Prometheus, version 0.0.4, which wants all samples of a name together.
type metrics struct {
	names []string                 // in the order of their first samples
	texts map[string]*bytes.Buffer // of each name: its head and its samples
}

func newMetrics() *metrics { return &metrics{texts: map[string]*bytes.Buffer{}} }

// add adds a sample. The first sample of a name decides the kind of the metric and its help; without a kind the name
// decides.
func (m *metrics) add(name, kind, help, sample string) {
	text := m.texts[name]
	if text == nil {
		switch {
		case kind != "":
		case strings.HasSuffix(name, "_total"):
			kind = "counter"
		default:
			kind = "gauge"
		}
		text = bytes.NewBufferString(fmt.Sprintf("# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, escapeHelp.Replace(help), kind))
		m.names, m.texts[name] = append(m.names, name), text
	}
	text.WriteString(sample + "\n")
}

func (m *metrics) write(out io.Writer) {
	for _, name := range m.names {
		_, _ = m.texts[name].WriteTo(out)
	}
}

// value adds a figure of Daimon.
func (m *metrics) value(name, labels string, value float64) {
	m.add("daimon_"+name, "", help[name], sample("daimon_"+name, labels, value))
}

// histogram adds the bounds of h in seconds, each with the number of all durations below.
func (m *metrics) histogram(name, labels string, h *histogram) {
	add := func(suffix, labels string, value float64) {
		m.add("daimon_"+name, "histogram", help[name], sample("daimon_"+name+suffix, labels, value))
	}
	first := ""
	if labels != "" {
		first = labels + ","
	}
	below := uint64(0)
	for i, n := range h.Buckets {
		below += n
		bound := "+Inf"
		if b := h.bound(i); b > 0 {
			bound = decimal(b.Seconds())
		}
		add("_bucket", first+pair("le", bound), float64(below))
	}
	add("_sum", labels, h.Sum.Seconds())
	add("_count", labels, float64(below))
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func sample(name, labels string, value float64) string {
	return name + "{" + labels + "} " + decimal(value)
}

var (
	escape     = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeHelp = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

func pair(name, value string) string { return name + `="` + escape.Replace(value) + `"` }

// metrics adds the figures of all schedulers together.
func (x *rows[R]) metrics(r *report, m *metrics) {
	for _, row := range x.sum(r) {
		name := pair(x.label, row.name)
		for i, f := range x.figures {
			switch v := row.cells[i].(type) {
			case histogram:
				m.histogram(f.metric, name, &v)
			case uint64:
				m.value(f.metric, name, float64(v))
			}
		}
	}
}

// metrics adds what a system of metrics collects: of each scheduler, and of each kind, service and stage engine.
func (r *report) metrics(m *metrics) {
	for _, s := range r.Schedulers {
		of := pair("scheduler", strconv.Itoa(s.Index))
		m.value("uptime_seconds_total", of, s.Uptime.Seconds())
		m.value("idle_seconds_total", of+","+pair("how", "asleep"), s.Idle.Asleep.Seconds())
		m.value("idle_seconds_total", of+","+pair("how", "pausing"), s.Idle.Pausing.Seconds())
		m.value("idle_seconds_total", of+","+pair("how", "polling"), s.Idle.Polling.Seconds())
		m.value("answer_age_seconds", of, s.Late.Seconds())
		for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
			m.value(name, of, float64(s.Counts[name]))
		}
		m.histogram("turn_seconds", of, &s.Turns)
		m.histogram("wake_seconds", of, &s.Wakes)
	}
	m.value("stalls_reported_total", "", float64(r.Stalls.Reported))
	m.value("stalls_suppressed_total", "", float64(r.Stalls.Suppressed))
	m.value("recordings_written_total", "", float64(r.Recordings.Written))
	m.value("recordings_suppressed_total", "", float64(r.Recordings.Suppressed))
	m.value("recordings_failed_total", "", float64(r.Recordings.Failed))
	m.histogram("stall_seconds", "", &r.Stalls.Durations)
	m.value("watchdog_late_total", "", float64(r.Stalls.Late))
	kinds.metrics(r, m)
	services.metrics(r, m)
	packets.metrics(r, m)
	engines.metrics(r, m)
	routes.metrics(r, m)
	backends.metrics(r, m)
}
