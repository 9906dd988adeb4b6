package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
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
				report := look.Report(false)
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
