package program_test

import (
	"flag"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/service"
)

func hello(w *httpd.Response, _ *httpd.Request) act.Action {
	w.Add("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.WriteString("Hello, World!\n")
	return nil
}

// A web server on one address.
func ExampleServe() {
	web := &httpd.Server{Handler: hello}
	program.Serve("127.0.0.1:8080", web.Serve)
}

// A program with a flag of its own, a system of processes, and two addresses, of which the second has an option of
// service.TCP.
func ExampleServer() {
	admin := flag.String("admin", "127.0.0.1:8081", "the `address` of the pages for administrators")
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()

	system := process.New(process.Config{})
	site := &httpd.Server{Handler: hello}
	pages := &httpd.Server{Handler: hello}
	server.Run(
		system,
		server.Listen(server.Addr, site.Serve),
		&service.TCP{Address: *admin, Handler: pages.Serve, KeepAlive: time.Minute},
	)
}
