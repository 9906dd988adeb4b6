// Command press is a print shop on the web: a job is typeset while the customer waits, and printed in the background.
//
//	go run ./examples/press
//	curl --data-binary @README.md http://127.0.0.1:7012/customers/ada/jobs
//	curl http://127.0.0.1:7012/customers/ada
//	curl http://127.0.0.1:7012/jobs/1
//
// Ctrl-C ends it in order, within -drain: requests that have begun are answered, printing stops, and the state of every
// job is printed last.
package main

import (
	"crypto/tls"
	"os"
	"time"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/press/press"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	var shop press.Shop
	cli.DurationVar(&shop.Pace, "pace", 300*time.Millisecond, "the `duration` of typesetting a job, and of printing a page")
	server := program.Server{Addr: "127.0.0.1:7012", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"http/1.1", "http/1.0"}}},
	}}
	server.Parse()
	shop.Door = server.Listen(server.Addr, shop.Serve)
	server.Run(&shop)
	shop.Report(os.Stdout)
}
