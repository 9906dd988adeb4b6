package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

type collect func(add func(Metric))

func (f collect) Collect(add func(Metric)) { f(add) }

func TestMetricsOfSources(t *testing.T) {
	for name, x := range map[string]struct {
		given   []Metric
		want    string // the samples
		refused int
	}{
		"names together":   {[]Metric{{Name: "a"}, {Name: "b"}, {Name: "a", Labels: []string{"x", "1"}}}, `a{} 0,a{x="1"} 0,b{} 0`, 0},
		"escapes":          {[]Metric{{Name: "a", Help: "1\n2", Labels: []string{"x", "\"\\\n\xff"}}}, `a{x="\"\\\n` + "\uFFFD" + `"} 0`, 0},
		"the same twice":   {[]Metric{{Name: "a", Labels: []string{"x", "1", "y", "2"}}, {Name: "a", Labels: []string{"y", "2", "x", "1"}}}, `a{x="1",y="2"} 0`, 1},
		"bad names":        {[]Metric{{}, {Name: "1a"}, {Name: "a-b"}, {Name: "daimon_a"}, {Name: "a\n"}}, "", 5},
		"bad labels":       {[]Metric{{Name: "a", Labels: []string{"x"}}, {Name: "a", Labels: []string{"__x", ""}}, {Name: "a", Labels: []string{"x", "", "x", ""}}}, "", 3},
		"a value too long": {[]Metric{{Name: "a", Labels: []string{"x", strings.Repeat("v", 1001)}}}, "", 1},
	} {
		own := &Inspector{Sources: []MetricSource{collect(func(add func(Metric)) {
			for _, m := range x.given {
				add(m)
			}
		})}}
		var out strings.Builder
		m := newMetrics()
		own.collect(m, zap.NewNop())
		m.write(&out)
		var samples []string
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "#") {
				samples = append(samples, strings.TrimSuffix(line, "\n"))
			}
		}
		last := len(samples) - 1
		require.Equal(t, fmt.Sprint("daimon_collected_refused{} ", x.refused), samples[last], name)
		require.Equal(t, x.want, strings.Join(samples[:last], ","), name)
	}
}

// What was broken: no figure could be read, also of the schedulers.
func TestASourceThatFailsIsLeftOut(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	x := &Inspector{Sources: []MetricSource{
		collect(func(add func(Metric)) {
			add(Metric{Name: "a"})
			add(Metric{Name: "1a"})
			panic("broken")
		}),
		nil,
		collect(func(add func(Metric)) { add(Metric{Name: "a", Value: 7}) }),
	}}
	var out strings.Builder
	m := newMetrics()
	x.collect(m, zap.New(core))
	m.write(&out)
	require.Contains(t, out.String(), "\na{} 7\n")
	require.Contains(t, out.String(), "\ndaimon_collected_refused{} 2\n")
	require.NotContains(t, out.String(), "a{} 0")
	require.Equal(t, 1, logs.FilterMessage("a source of figures panicked").FilterField(zap.Any("value", "broken")).Len())
}
