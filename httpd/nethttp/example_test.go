package nethttp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/program"
)

// A program that has an http.Server names another type, and stays as it is.
func ExampleServer() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &nethttp.Server{ // it was &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "Hello from", r.URL.Path)
		}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()

	if answer, err := http.Get("http://" + listener.Addr().String() + "/a"); err == nil {
		_, _ = io.Copy(os.Stdout, answer.Body)
		_ = answer.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}

	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	fmt.Println(server.Shutdown(within))
	fmt.Println(<-ended)
	// Output:
	// Hello from /a
	// <nil>
	// http: Server closed
}

// Some routes of a server of httpd have handlers of net/http, of which at most 1000 run at a time. The others run on the
// schedulers.
func ExampleAdapter() {
	old := http.NewServeMux()
	old.HandleFunc("GET /users/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Hello", r.PathValue("name")) // it may block
	})
	adapter := &nethttp.Adapter{Handler: old, Most: 1000}

	site := &httpd.Mux{}
	site.Handle("GET /healthz", httpd.Healthy)
	site.Handle("/", adapter.Serve)
	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: site.Serve}).Serve)
}

// An http.Client calls on the schedulers. Here they do nothing else; a server gives the Transport to program.Server.Run.
func ExampleTransport() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "Hello from", r.URL.Path)
	}))
	defer site.Close()
	calls := &nethttp.Transport{}
	ctx, end := context.WithCancel(context.Background())
	err := act.Run(ctx, act.Config{Schedulers: 1}, calls.Setup, func(*act.Scheduler) error {
		go func() {
			defer end()
			web := &http.Client{Transport: calls, Timeout: 10 * time.Second}
			answer, err := web.Get(site.URL + "/a")
			if err != nil {
				fmt.Println(err)
				return
			}
			_, _ = io.Copy(os.Stdout, answer.Body)
			_ = answer.Body.Close()
		}()
		return nil
	})
	fmt.Println(err)
	// Output:
	// Hello from /a
	// <nil>
}
