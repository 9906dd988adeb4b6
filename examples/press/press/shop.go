// Package press is a print shop on the web. It combines most of Daimon: requests are tasks, customers are processes, and
// jobs are work in stages.
//
//	POST /customers/ada/jobs ─▶ task ──asks──▶ process "ada" ──off the thread──▶ the job is typeset and stored
//	                                               ▲    ▲
//	GET  /customers/ada ──────▶ task ──asks────────┘    └────is told────── SET ──PRINTING──▶ PRINTED
//	GET  /jobs/1 ─────────────▶ task ─────────────────────reads──────────────────▲
//
// One order ends all of it. Requests that have begun are answered, and the processes keep running for them. The press
// releases its jobs, which are SET again, and starts no others. When the last request is answered, all processes sleep and
// the program ends.
package press

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

const (
	maxText      = 1 << 20 // of a job, in bytes
	maxCustomers = 10_000
	patience     = 10 * time.Second // for a process to answer
)

// Shop is a service. Pace and Door are set before Setup, once.
type Shop struct {
	Pace time.Duration // how long it takes to typeset a job, and to print a page
	Door               // accepts the connections; its handler is Serve

	sys    *process.System
	engine *stage.Engine
	web    httpd.Server

	mu        sync.Mutex // held briefly, since handlers take it
	customers map[string]process.Ref[message]
}

// Door is a service on a socket.
type Door interface {
	Setup(*act.Scheduler) error
	Addr() net.Addr
}

// Setup is a set-up function that starts the shop.
func (x *Shop) Setup(s *act.Scheduler) error {
	if s.Index() == 0 {
		x.open()
	}
	for _, setup := range []func(*act.Scheduler) error{x.sys.Setup, x.engine.Setup, x.Door.Setup} {
		if err := setup(s); err != nil {
			return err
		}
	}
	return nil
}

func (x *Shop) open() {
	site := &httpd.Mux{}
	site.Handle("POST /customers/{name}/jobs", httpd.WithBody(maxText, x.submit))
	site.Handle("GET /customers/{name}", x.account)
	site.Handle("GET /jobs/{id}", x.job)
	x.web = httpd.Server{Handler: site.Serve, MaxBody: maxText}
	x.sys = process.New(process.Config{})
	x.customers = map[string]process.Ref[message]{}
	var err error
	x.engine, err = stage.New(stage.Config{
		Store:    memory.New(nil),
		Kinds:    map[string]stage.Kind{kind: {Chain: chain}},
		Provider: stage.Processors{"print": stage.ProcessorFunc(x.print)},
		OnEnd:    x.ended,
	})
	if err != nil {
		panic(err) // the configuration above is wrong
	}
}

// Serve is the action of a connection.
func (x *Shop) Serve(c *listener.Conn) act.Action { return x.web.Serve(c) }

// submit answers with the number of the job when it is typeset.
func (x *Shop) submit(w *httpd.Response, r *httpd.Request, body []byte) act.Action {
	to, text := x.customer(string(r.Value("name")), true), string(body)
	ask := &process.Ask[message, stage.ID]{To: to, Within: patience, Message: func(reply process.Reply[stage.ID]) message {
		return submit{text, reply}
	}}
	return &question{act.Child{Action: ask}, w, func() {
		w.SetStatus(201)
		say(w, fmt.Sprint("job ", ask.Value))
	}}
}

// account answers with the state of a customer's jobs.
func (x *Shop) account(w *httpd.Response, r *httpd.Request) act.Action {
	to := x.customer(string(r.Value("name")), false)
	if to.ID() == 0 {
		w.StatusOnly(404)
		return nil
	}
	ask := &process.Ask[message, string]{To: to, Within: patience, Message: func(reply process.Reply[string]) message {
		return account{reply}
	}}
	return &question{act.Child{Action: ask}, w, func() { say(w, ask.Value) }}
}

// job answers with the stage of a job.
func (x *Shop) job(w *httpd.Response, r *httpd.Request) act.Action {
	id, _ := strconv.ParseInt(string(r.Value("id")), 10, 64)
	look := stage.Call(x.engine, func(ctx context.Context) (stage.Task, error) {
		t, err := x.engine.Get(ctx, stage.ID(id))
		if errors.Is(err, stage.ErrNotFound) {
			return t, nil
		}
		return t, err
	})
	return &question{act.Child{Action: look}, w, func() {
		if look.Value.ID == 0 {
			w.StatusOnly(404)
			return
		}
		say(w, condition(&look.Value))
	}}
}

// question is an action that asks a process or the engine, and then answers the request. If that fails, the status is 503.
type question struct {
	act.Child
	w      *httpd.Response
	answer func()
}

func (q *question) Act(t *act.Task) act.Directive {
	switch d := q.Child.Act(t); d {
	case act.Done:
		q.answer()
	case act.Failed:
		q.w.StatusOnly(503)
	default:
		return d
	}
	return act.Done
}

func say(w *httpd.Response, line string) { w.SetBody([]byte(line + "\n")) }

// customer returns the process of a customer. It creates one for an unknown name if it may and there are not too many;
// otherwise it returns the zero Ref.
func (x *Shop) customer(name string, may bool) process.Ref[message] {
	x.mu.Lock()
	defer x.mu.Unlock()
	to, known := x.customers[name]
	if !known && may && len(x.customers) < maxCustomers {
		c := &customer{shop: x, name: name}
		// The process has no name: a client has chosen that of the customer, and it would be on the pages of package inspect.
		to = process.Spawn(x.sys, process.Handler[message](c.receive), process.Options{})
		x.customers[name] = to
	}
	return to
}

// Report writes the state of every job, and the number of customers. It is called after the end.
func (x *Shop) Report(w io.Writer) {
	if x.engine == nil {
		return
	}
	tasks, err := x.engine.List(context.Background(), stage.Selection{})
	if err != nil {
		fmt.Fprintln(w, err)
	}
	for i := range tasks {
		fmt.Fprintln(w, condition(&tasks[i]))
	}
	n := x.sys.Stats()
	fmt.Fprintf(w, "jobs: %d, customers: %d, of whom are left: %d\n", len(tasks), n.Spawned, n.Alive)
}
