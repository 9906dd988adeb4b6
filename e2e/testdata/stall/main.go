// Command stall is a web server with a mistake: each request computes until SIGWINCH, and its scheduler does nothing else.
package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
)

var over atomic.Bool

func thumbnail(*httpd.Response, *httpd.Request) act.Action {
	for !over.Load() {
	}
	return nil
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	go func() {
		<-signals
		over.Store(true)
	}()
	program.Serve("127.0.0.1:0", (&httpd.Server{Handler: thumbnail}).Serve, &inspect.Inspector{})
}
