package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/logs"
)

// MetricSource adds metrics of your own to /metrics: set it in [Inspector].Sources.
type MetricSource interface {
	// Collect calls add for each figure, before it returns. It is called once for each request of /metrics, on a
	// goroutine that is not a scheduler's. Several may call it at a time, so it uses atomics or locks. After a panic,
	// which is logged, all figures of the source are left out.
	Collect(add func(Metric))
}

// Metric is a figure of a [MetricSource], in the data model of Prometheus. A Metric with a mistake is left out, and so is each
// beyond 10,000. The metric daimon_collected_refused counts them; it counts a source that has panicked, or is nil, as one.
type Metric struct {
	// Name is the name of the metric. It has letters, digits and "_", does not begin with a digit or "daimon_", and may come
	// again with other labels. If it ends with "_total" the figure is a counter, and otherwise a gauge.
	Name string
	// Help says what the figure means, in the line HELP. If several figures have the same Name, the first Help counts.
	Help string
	// Labels has a name, its value, the next name, and so on. A name has the form of Name; a value is any text of up to 1000
	// bytes.
	Labels []string
	// Value is the figure itself, at the time of the call.
	Value float64
}

// mostCollected is how many figures of all sources are written.
const mostCollected = 10_000

var validName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// collect adds what the sources have.
func (x *Inspector) collect(m *metrics, log *zap.Logger) {
	if len(x.Sources) == 0 {
		return
	}
	seen, refused := map[string]bool{}, 0 // by name and labels: Prometheus takes nothing of a page on which a figure comes twice
	for _, c := range x.Sources {
		figures, ok := collectFrom(c, log)
		if !ok {
			refused++
		}
		for _, f := range figures {
			labels, ok := f.labels()
			key := f.Name + "{" + labels + "}"
			if !ok || seen[key] || len(seen) == mostCollected {
				refused++
				continue
			}
			seen[key] = true
			m.add(f.Name, "", logs.Text(f.Help), key+" "+decimal(f.Value))
		}
	}
	m.value("collected_refused", "", float64(refused))
}

// collectFrom returns what c has, and false if it is nil or panics.
func collectFrom(c MetricSource, log *zap.Logger) (all []Metric, ok bool) {
	if c == nil {
		return nil, false
	}
	defer func() {
		if p := recover(); p != nil {
			log.Error("a source of figures panicked", zap.String("source", fmt.Sprintf("%T", c)), zap.Any("value", p), zap.Stack("stack"))
			all, ok = nil, false
		}
	}()
	c.Collect(func(f Metric) { all = append(all, f) })
	return all, true
}

// labels returns the labels in one order, and reports whether the figure has no mistake.
func (f *Metric) labels() (text string, ok bool) {
	if !validName.MatchString(f.Name) || strings.HasPrefix(f.Name, "daimon_") || len(f.Labels)%2 != 0 {
		return "", false
	}
	var all, names []string
	for of := range slices.Chunk(f.Labels, 2) {
		if !validName.MatchString(of[0]) || strings.HasPrefix(of[0], "__") || slices.Contains(names, of[0]) || len(of[1]) > 1000 {
			return "", false
		}
		names = append(names, of[0])
		all = append(all, pair(of[0], logs.Text(of[1])))
	}
	slices.Sort(all)
	return strings.Join(all, ","), true
}
