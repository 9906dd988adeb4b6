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
	"os"
	"time"

	"github.com/daimon-go/daimon/examples/internal/tool"
	"github.com/daimon-go/daimon/examples/press/press"
	"github.com/daimon-go/daimon/program"
)

func main() {
	var shop press.Shop
	tool.Duration(&shop.Pace, "pace", 300*time.Millisecond, "the `duration` of setting a job, and of printing a page")
	server := program.Server{Addr: "127.0.0.1:7012"}
	server.Parse()
	shop.Door = server.Listen(server.Addr, shop.Serve)
	server.Run(&shop)
	shop.Report(os.Stdout)
}
