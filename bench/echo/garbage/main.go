// Command garbage is examples/echo, or with -http the greeting of examples/httpd, with an allocation of -garbage bytes in each turn
// of a connection. So the collector of memory runs while messages are measured, as it does in servers that do more.
package main

import (
	"flag"
	"log"
	"runtime"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
)

// wasteful is the action of a connection.
type wasteful struct {
	act.Action
	last []byte
}

var size = flag.Int("garbage", 16<<10, "`bytes` to allocate in each turn")

func (w *wasteful) Act(t *act.Task) act.Directive {
	w.last = make([]byte, *size)
	return w.Action.Act(t)
}

func hello(w *httpd.Response, _ *httpd.Request) act.Action {
	w.Add("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.WriteString("Hello, World!")
	return nil
}

func main() {
	web := flag.Bool("http", false, "answer requests of HTTP")
	server := program.Server{Addr: "127.0.0.1:7007"}
	server.Parse()
	serve := echo.Echo
	if *web {
		serve = (&httpd.Server{Handler: hello}).Serve
	}
	server.Run(server.Listen(server.Addr, func(c *listener.Conn) act.Action { return &wasteful{Action: serve(c)} }))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	log.Printf("garbage: %d collections", m.NumGC)
}
