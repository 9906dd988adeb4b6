// Command press is a print shop on the web: what customers send is set while they wait, and printed when there is time.
//
//	go run ./examples/press
//	curl --data-binary @README.md http://127.0.0.1:7012/customers/ada/jobs
//	curl http://127.0.0.1:7012/customers/ada
//	curl http://127.0.0.1:7012/jobs/1
//
// Ctrl-C ends it in an orderly way, within -drain: requests that have begun are answered, what is on the press is taken
// off it, and the last it says is what has become of every job.
package main

import (
	"flag"
	"os"
	"time"

	"github.com/daimon-go/daimon/examples/internal/cli"
	"github.com/daimon-go/daimon/examples/press/press"
)

func main() {
	var shop press.Shop
	cli.Duration(flag.CommandLine, &shop.Pace, "pace", 300*time.Millisecond, "the `duration` of setting a job, and of printing a page")
	cli.Main("press", "127.0.0.1:7012", func(f *cli.Flags) cli.Service {
		shop.Door = f.Listen(shop.Serve)
		return &shop
	})
	shop.Report(os.Stdout)
}
