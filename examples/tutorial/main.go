// Command tutorial is the program of docs/tutorial.md, as it is after the last step.
//
//	go run ./examples/tutorial
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

func main() {
	health := flag.String("health", "127.0.0.1:8081", "the `address` for probes")
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}},
		&inspect.Inspector{},
	}}
	server.Parse()
	web := &httpd.Server{Handler: routes().Serve}
	probes := &httpd.Server{Handler: httpd.Ready}
	server.Run(
		server.Listen(server.Addr, web.Serve),
		&service.Listener{Address: *health, Handler: probes.Serve, AtEnd: service.LastOfAll},
	)
}

func hello(w *httpd.Response, r *httpd.Request) act.Action {
	fmt.Fprintln(w, "Hello, World!")
	return nil
}

func routes() *httpd.Mux {
	site := &httpd.Mux{}
	site.Handle("GET /{$}", hello)
	site.Handle("GET /hello/{name}", greet)
	site.Handle("GET /later/{name}", later)
	site.Handle("GET /notice", notice)
	site.Handle("POST /visits/{name}", (&visits{of: map[string]int{}}).add)
	return site
}

func greet(w *httpd.Response, r *httpd.Request) act.Action {
	fmt.Fprintf(w, "Hello, %s!\n", r.Value("name"))
	return nil
}

func later(w *httpd.Response, r *httpd.Request) act.Action {
	name := string(r.Value("name"))
	answer := func(*act.Task) act.Directive {
		fmt.Fprintf(w, "Hello, %s, after a second!\n", name)
		return act.Done
	}
	return act.Seq(&listener.Sleep{For: time.Second}, act.Func(answer))
}

func notice(w *httpd.Response, r *httpd.Request) act.Action {
	return coro.New(func(co *coro.Co) error {
		text, err := coro.Offload(co, func() ([]byte, error) {
			return os.ReadFile("notice.txt")
		})
		if err != nil {
			return err
		}
		w.SetBody(text)
		return nil
	})
}

type visits struct {
	mu sync.Mutex
	of map[string]int
}

func (v *visits) add(w *httpd.Response, r *httpd.Request) act.Action {
	name := string(r.Value("name"))
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of[name] == 0 && len(v.of) == 1000 {
		w.StatusOnly(http.StatusInsufficientStorage)
		return nil
	}
	v.of[name]++
	fmt.Fprintf(w, "%s: visit %d\n", name, v.of[name])
	return nil
}
