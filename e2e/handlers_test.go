package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// asHandlers is an environment variable that makes a server of this test binary: of handlers of net/http that wait. Its value
// names the server that calls them, "net/http", or "nethttp" and its drain limit.
const asHandlers = "DAIMON_E2E_HANDLERS"

// serveHandlers is the main function of that server.
func serveHandlers(how string) {
	x := &waitingRoom{event: make(chan struct{})}
	if how == "net/http" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			fmt.Fprintln(os.Stderr, "listening on", l.Addr())
			err = http.Serve(l, x.handler())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	drain, err := time.ParseDuration(strings.TrimPrefix(how, "nethttp "))
	if err != nil {
		panic(err)
	}
	var forget context.CancelFunc
	x.ending, forget = signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer forget()
	web := &httpd.Server{Handler: (&nethttp.Adapter{Handler: x.handler()}).Serve, Timeouts: httpd.Timeouts{Body: time.Minute}}
	tcp := &service.TCP{Address: "127.0.0.1:0", Handler: web.Serve}
	err = act.Run(context.Background(), act.Config{}, tcp.Setup, monitor.Signals(shutdown.Policy{Time: drain, Drop: true}),
		func(s *act.Scheduler) error {
			if s.Index() == len(s.Group().Schedulers())-1 {
				fmt.Fprintln(os.Stderr, "listening on", tcp.Addr())
			}
			return nil
		})
	cut := &shutdown.Cut{}
	switch {
	case err == nil:
		fmt.Fprintln(os.Stderr, "ended in order")
	case errors.As(err, &cut):
		fmt.Fprintln(os.Stderr, err)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// waitingRoom has handlers that wait for an event, or for the signal to end.
type waitingRoom struct {
	ending  context.Context // nil: it gets no signal
	waiting atomic.Int64

	mu    sync.Mutex
	event chan struct{} // closed by the next one
}

func (x *waitingRoom) next() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.event
}

func (x *waitingRoom) happens() {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.event)
	x.event = make(chan struct{})
}

// wait returns false if the client has gone.
func (x *waitingRoom) wait(r *http.Request) bool {
	event := x.next()
	x.waiting.Add(1)
	defer x.waiting.Add(-1)
	select {
	case <-event:
		return true
	case <-r.Context().Done():
		return false
	}
}

// pageOf returns the page of a number: more than is gathered for one write.
func pageOf(number string) string { return strings.Repeat(number+"\n", 2000) }

func (x *waitingRoom) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	m.HandleFunc("GET /poll", func(w http.ResponseWriter, r *http.Request) { // long polling
		if x.wait(r) {
			_, _ = io.WriteString(w, "event")
		}
	})
	m.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) { // server-sent events
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: hello\n\n")
		w.(http.Flusher).Flush()
		if x.wait(r) {
			_, _ = io.WriteString(w, "data: event\n\n")
		}
	})
	m.HandleFunc("POST /event", func(_ http.ResponseWriter, r *http.Request) { // one with each byte
		for one := make([]byte, 1); ; x.happens() {
			if _, err := r.Body.Read(one); err != nil {
				return
			}
		}
	})
	m.HandleFunc("GET /waiting", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, x.waiting.Load()) })
	m.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) { // holds a file
		f, err := os.Open(os.DevNull)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		if x.wait(r) {
			_, _ = io.WriteString(w, "event")
		}
	})
	m.HandleFunc("GET /page/{number}", func(w http.ResponseWriter, r *http.Request) { // the rest of it after the signal
		text := pageOf(r.PathValue("number"))
		_, _ = io.WriteString(w, text[:100])
		w.(http.Flusher).Flush()
		x.waiting.Add(1)
		<-x.ending.Done()
		_, _ = io.WriteString(w, text[100:])
	})
	m.HandleFunc("GET /never", func(http.ResponseWriter, *http.Request) {
		x.waiting.Add(1)
		select {}
	})
	return m
}
