package program_test

import (
	"flag"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
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

// visit is a message to the counter. It says where the answer goes.
type visit struct{ total process.Reply[int] }

func counter() process.Action[visit] {
	visits := 0
	return process.Handler(func(p *process.Self[visit], v visit) {
		visits++
		v.total.Send(visits)
	})
}

// site is a service with one process, which all connections on all schedulers share. Setup is called once for each
// scheduler: the process.System needs each call, and the first call also spawns the process.
type site struct {
	system  *process.System
	counter process.Ref[visit]
}

func (x *site) Setup(s *act.Scheduler) error {
	if err := x.system.Setup(s); err != nil || s.Index() > 0 {
		return err
	}
	x.counter = process.Spawn(x.system, counter(), process.Options{Name: "counter"})
	return nil
}

func (x *site) page(w *httpd.Response, _ *httpd.Request) act.Action {
	ask := &process.Ask[visit, int]{To: x.counter, Within: time.Second, Message: func(total process.Reply[int]) visit {
		return visit{total}
	}}
	return act.Seq(ask, act.Func(func(*act.Task) act.Directive {
		fmt.Fprintf(w, "This is visit %d.\n", ask.Value)
		return act.Done
	}))
}

// A program with a flag and a service of its own, on two addresses. The second has an option of [service.Listener].
func ExampleServer() {
	admin := flag.String("admin", "127.0.0.1:8081", "the `address` for administrators")
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()

	visits := &site{system: process.New()}
	public := &httpd.Server{Handler: visits.page}
	private := &httpd.Server{Handler: hello}
	server.Run(
		visits,
		server.Listen(server.Addr, public.Serve),
		&service.Listener{Address: *admin, Handler: private.Serve, KeepAlive: time.Minute},
	)
}

// topics is an Option of the program's own.
type topics struct{ most int }

func (x *topics) Flags(fs *flag.FlagSet) (check func() error) {
	fs.IntVar(&x.most, "topics", 1000, "the largest `number` of topics")
	return func() error {
		if x.most < 1 {
			return fmt.Errorf("-topics must be above 0: %d", x.most)
		}
		return nil
	}
}

// A program whose user may have it read PROXY headers, bound what each client may have, speak TLS, and show what it is doing.
func ExampleOption() {
	server := program.Server{Addr: "127.0.0.1:1883", Options: []program.Option{
		&proxyproto.Config{}, // -proxy-from 10.0.0.0/8
		&admission.Limiter{}, // -max-per-source 100 -rate-per-source 20
		&secure.TLS{},        // -tls-cert cert.pem -tls-key key.pem
		&inspect.Inspector{}, // -inspect 127.0.0.1:6060
		&topics{},            // -topics 50
	}}
	server.Parse()
	server.Run(server.Listen(server.Addr, echo.Echo))
}
