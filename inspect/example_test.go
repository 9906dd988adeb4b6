package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/inspect"
)

// A program that is stuck for ten seconds ends, and its supervisor starts it again.
func ExampleWatch() {
	watch := inspect.Watch{Then: 10 * time.Second, Stalled: func(stall json.RawMessage) {
		log.Printf("stuck: %s", stall)
		os.Exit(1)
	}}
	_ = &inspect.Inspector{Address: "127.0.0.1:6060", Watch: watch} // an Option of package program
}

// A program without package program looks into its own schedulers.
func ExampleInspector_Report() {
	look := &inspect.Inspector{}
	cfg := act.Config{Schedulers: 2}
	look.Configure(&cfg)
	ask := func(s *act.Scheduler) error {
		if s.Index() == 0 {
			s.Spawn(&act.Call[json.RawMessage]{F: func() (json.RawMessage, error) {
				report := look.Report()
				var of struct{ Schedulers []struct{ Index int } }
				fmt.Println(json.Unmarshal(report, &of), len(of.Schedulers), "schedulers")
				return report, nil
			}})
		}
		return nil
	}
	fmt.Println(act.Run(context.Background(), cfg, look.Setup, ask))
	fmt.Println(look.Close())
	// Output:
	// <nil> 2 schedulers
	// <nil>
	// <nil>
}

// orders are counted by the handlers of a shop, on every scheduler.
type orders struct{ paid, refused atomic.Int64 }

// Collect implements inspect.MetricSource. Any goroutine may call it, so the counts are atomic.
func (o *orders) Collect(add func(inspect.Metric)) {
	const name, help = "shop_orders_total", "Orders since the start."
	add(inspect.Metric{Name: name, Help: help, Labels: []string{"outcome", "paid"}, Value: float64(o.paid.Load())})
	add(inspect.Metric{Name: name, Labels: []string{"outcome", "refused"}, Value: float64(o.refused.Load())})
}

// A source adds figures of the program to /metrics, which Prometheus reads.
func ExampleMetricSource() {
	counts := &orders{}
	look := &inspect.Inspector{Address: "127.0.0.1:6060", Sources: []inspect.MetricSource{counts}} // an Option of package program
	counts.paid.Add(2)

	// A request of /metrics does this.
	for _, source := range look.Sources {
		source.Collect(func(m inspect.Metric) { fmt.Println(m.Name, m.Labels, m.Value) })
	}
	// Output:
	// shop_orders_total [outcome paid] 2
	// shop_orders_total [outcome refused] 0
}
