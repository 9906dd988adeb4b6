package daimon_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/gateway"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// within returns a Handler that answers 504 if the action of h takes longer than d.
func within(d time.Duration, h httpd.Handler) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		a := h(w, r)
		if a == nil {
			return nil // the answer is complete
		}
		return &answered{act.Child{Action: listener.Within(d, a)}, w}
	}
}

// answered is an action whose errors become statuses: the task does not fail, and the connection goes on.
type answered struct {
	act.Child
	w *httpd.Response
}

func (a *answered) Act(t *act.Task) act.Directive {
	d := a.Child.Act(t)
	if d != act.Failed {
		return d
	}
	switch err := t.Err(); {
	case errors.Is(err, sql.ErrNoRows):
		a.w.StatusOnly(http.StatusNotFound)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		a.w.StatusOnly(http.StatusGatewayTimeout)
	default:
		return d // the answer is 500
	}
	return act.Done
}

// nameOf returns a Handler that asks a database. Another goroutine waits for the answer.
func nameOf(db *sql.DB) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		id := string(r.Value("id")) // a copy: the request is lent until the turn ends
		query := &act.Call[string]{F: func() (name string, err error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = db.QueryRowContext(ctx, "SELECT name FROM users WHERE id = $1", id).Scan(&name)
			return name, err
		}}
		write := act.Func(func(*act.Task) act.Directive {
			_, _ = w.WriteString(query.Value)
			return act.Done
		})
		return &answered{act.Child{Action: act.Seq(query, write)}, w}
	}
}

// priceOf returns a Handler that asks another server, in a coroutine.
func priceOf(shop *client.Origin) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		call := &client.Call{Origin: shop, Target: "/items/" + url.PathEscape(string(r.Value("id")))}
		return coro.New(func(co *coro.Co) error {
			if err := co.Do(call); err != nil {
				return err
			}
			answer := call.Response()
			defer answer.Close()
			w.SetStatus(answer.Status())
			_, err := io.Copy(coro.Writer(co, w), coro.Reader(co, answer))
			return err
		})
	}
}

// price is the same as an action.
type price struct {
	w      *httpd.Response
	call   client.Call
	answer *client.Response // nil: the call is not done
}

func pricing(shop *client.Origin) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		target := "/items/" + url.PathEscape(string(r.Value("id")))
		return &price{w: w, call: client.Call{Origin: shop, Target: target}}
	}
}

func (p *price) Act(t *act.Task) act.Directive {
	if p.answer == nil {
		if d := p.call.Act(t); d != act.Done {
			return d
		}
		p.answer = p.call.Response()
		p.w.SetStatus(p.answer.Status())
	}
	in, err := p.answer.Peek() // what has come; it is lent until the turn ends
	if err == nil {
		var n int
		n, err = p.w.Write(in) // as much as the client has room for
		p.answer.Discard(n)
	}
	return listener.Next(t, err)
}

// Close is called when the action has ended, however it did.
func (p *price) Close() error {
	if p.answer != nil {
		return p.answer.Close() // the next call can use the connection
	}
	return p.call.Close()
}

// prices returns an http.Handler that asks another server. It blocks, so it runs on a goroutine.
func prices(web *http.Client, shop string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		question, err := http.NewRequestWithContext(r.Context(), "GET", shop+"/items/"+url.PathEscape(r.PathValue("id")), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer, err := web.Do(question)
		if err != nil {
			http.Error(w, "the shop does not answer", http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}
}

// logs returns an OnResponse that logs each request: its pattern and not its path, so that lines can be grouped.
func logs(log *zap.Logger) func(*httpd.Response, *httpd.Request) {
	return func(w *httpd.Response, r *httpd.Request) {
		log.Info("request", zap.String("method", string(r.Method())), zap.String("pattern", r.Pattern()),
			zap.Int("status", w.Status()), zap.Duration("took", r.Scheduler().Clock().Monotonic()-r.Began()))
	}
}

// noSniff is middleware: it adds a field to every answer of h.
func noSniff(h httpd.Handler) httpd.Handler {
	field := httpd.NewField("X-Content-Type-Options", "nosniff")
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		w.AddField(field)
		return h(w, r)
	}
}

// bearer is middleware: it refuses requests without the token.
func bearer(token string, h httpd.Handler) httpd.Handler {
	want := []byte("Bearer " + token)
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		if subtle.ConstantTimeCompare(r.Header("Authorization"), want) != 1 {
			w.StatusOnly(http.StatusUnauthorized)
			w.Add("WWW-Authenticate", "Bearer")
			return nil
		}
		return h(w, r)
	}
}

type sum struct{ A, B int }

// add reads JSON and answers with JSON. A body of more than 64 KiB is answered with 413.
var add = httpd.WithBody(64<<10, func(w *httpd.Response, _ *httpd.Request, body []byte) act.Action {
	var s sum
	if err := json.Unmarshal(body, &s); err != nil {
		w.StatusOnly(http.StatusBadRequest)
		return nil
	}
	w.Add("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"sum": s.A + s.B})
	return nil
})

// forward returns a Gateway that passes requests on to servers in turn, and leaves out one that does not answer /healthz.
func forward(addresses ...string) (*gateway.Gateway, error) {
	site := gateway.Group{Name: "site", Health: gateway.Health{Path: "/healthz"}}
	for _, address := range addresses {
		site.Backends = append(site.Backends, gateway.Backend{Address: address})
	}
	table, err := gateway.NewTable(gateway.Config{
		Groups: []gateway.Group{site},
		Routes: []gateway.Route{{Group: "site"}}, // any host, any path
	})
	if err != nil {
		return nil, err
	}
	g := &gateway.Gateway{}
	g.Swap(table)
	return g, nil
}

// knock returns a filter: a connection is refused unless its first line is the word.
func knock(word string) listener.Filter {
	return func(c *listener.Conn) act.Action {
		lines := listener.Line{Conn: c, Max: 256}
		return act.Func(func(t *act.Task) act.Directive {
			line, err := lines.Read()
			switch {
			case err == io.EOF, err == nil && string(line) != word:
				return t.Fail(&listener.PeerError{Err: errors.New("the word is missing or wrong")})
			case err != nil:
				return listener.Next(t, err)
			}
			return act.Done
		})
	}
}

// greet is a protocol of lines, as a coroutine. In a shutdown a connection that waits for a line is closed, and a line that has
// come is answered.
func greet(c *coro.Conn) error {
	in := bufio.NewReader(c)
	for {
		var name string
		err := c.Co().UntilOrder(func() (err error) {
			name, err = in.ReadString('\n')
			return err
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c, "hello, %s", name); err != nil {
			return err
		}
	}
}

// greeter is the same protocol as an action. A client has a minute for each line.
type greeter struct {
	*listener.Conn
	lines  listener.Line
	answer []byte // waits for room; nil: there is none
	heard  bool   // a line has come
	timer  act.Timer
	until  time.Duration // when the time for the line is over
	leave  time.Duration // when a shutdown ends a connection at rest
}

func greeting(c *listener.Conn) act.Action {
	return &greeter{Conn: c, lines: listener.Line{Conn: c, Max: 4 << 10}, leave: math.MaxInt64,
		until: c.Scheduler().Now() + time.Minute}
}

func (g *greeter) Act(t *act.Task) act.Directive {
	for range 16 { // lines in a turn
		if err := g.step(); err != nil {
			return g.wait(t, err)
		}
		g.heard, g.until = true, t.Scheduler().Now()+time.Minute
	}
	return act.Yield
}

func (g *greeter) step() error {
	if g.answer == nil {
		name, err := g.lines.Read()
		if err != nil {
			return err
		}
		g.answer = fmt.Appendf(nil, "hello, %s\n", name)
	}
	err := g.Push(g.answer) // all of it or nothing
	if err == nil {
		g.answer = nil
	}
	return err
}

// wait ends the connection if its time is over. Input and room for output wake the task earlier than the timer.
func (g *greeter) wait(t *act.Task, err error) act.Directive {
	until := g.until
	if g.answer == nil && g.Buffered() == 0 {
		until = min(until, g.leave)
	}
	if _, blocked := err.(act.Blocked); blocked && t.Scheduler().Now() >= until {
		return act.Done
	}
	t.WakeAt(&g.timer, until)
	return listener.Next(t, err)
}

// Stop is called when a shutdown begins, and the task has a turn after it.
func (g *greeter) Stop(t *act.Task, _ shutdown.Order) {
	if g.heard {
		g.leave = t.NextLeaveTime()
	} else {
		g.leave = g.FirstLeaveTime(t)
	}
}

// Close is called when the action has ended, however it did. The service closes the connection.
func (g *greeter) Close() error {
	g.timer.Stop()
	return nil
}

// present has the connections of a scheduler.
var present = act.NewLocal(func(*act.Scheduler) *[]*listener.Conn { return new([]*listener.Conn) })

// guest is the action of a connection: what a client says goes to all.
type guest struct {
	*listener.Conn
	lines listener.Line
	said  []byte // waits for room in the inboxes of the schedulers; nil: there is none
}

func join(c *listener.Conn) act.Action {
	all := present.Get(c.Scheduler())
	*all = append(*all, c)
	return &guest{Conn: c, lines: listener.Line{Conn: c, Max: 4 << 10}}
}

func (g *guest) Act(t *act.Task) act.Directive { return listener.Next(t, g.step(t)) }

func (g *guest) step(t *act.Task) error {
	if g.said == nil {
		line, err := g.lines.Read()
		if err != nil {
			return err
		}
		g.said = append(bytes.Clone(line), '\n') // the line is lent, and the message is shared
	}
	said := g.said
	err := t.Scheduler().Group().Broadcast(func(s *act.Scheduler) {
		for _, c := range *present.Get(s) {
			if c.PushShared(said) != nil { // it reads too slowly, or is closed
				c.Abort()
			}
		}
	})
	if err == nil { // it is posted
		g.said = nil
	}
	return err
}

// Close is called when the connection has ended, however it did: nothing more is pushed to it.
func (g *guest) Close() error {
	all := present.Get(g.Scheduler())
	i := slices.Index(*all, g.Conn)
	*all = slices.Delete(*all, i, i+1)
	return nil
}

func Example_broadcast() {
	program.Serve("127.0.0.1:7007", join)
}

func Example_limits() {
	limits := &admission.Limiter{Conns: 100, Rate: 20, Messages: 50, MessageBurst: 200}
	web := &httpd.Server{Handler: httpd.Limited(limits.Take, add)}
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{limits}}
	server.Parse()
	server.Run(server.Listen(server.Addr, web.Serve))
}

func Example_tls() {
	web := &httpd.Server{Handler: add}
	encrypted := &secure.TLS{Config: &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}}}
	program.Serve("127.0.0.1:8443", web.Serve, encrypted) // -tls-cert cert.pem -tls-key key.pem
}

func Example_tlsAlways() {
	web := &httpd.Server{Handler: add}
	files := &secure.Files{Cert: "cert.pem", Key: "key.pem"} // SIGHUP reads them again
	config := &tls.Config{GetCertificate: files.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
	server := program.Server{Addr: "127.0.0.1:8443"}
	server.Parse()
	server.Run(files, server.Listen(server.Addr, web.Serve, secure.Server(config, nil)))
}

func Example_probes() {
	web := &httpd.Server{Handler: add}
	checks := &httpd.Mux{}
	checks.Handle("GET /healthz", httpd.Healthy)
	checks.Handle("GET /readyz", httpd.Ready)
	last := &httpd.Server{Handler: checks.Serve}
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()
	server.Run(
		server.Listen(server.Addr, web.Serve),
		&service.Listener{Address: "127.0.0.1:8081", Handler: last.Serve, AtEnd: service.LastOfAll},
	)
}

func Example_transport() {
	calls := &nethttp.Transport{}
	site := http.NewServeMux()
	site.Handle("GET /prices/{id}", prices(&http.Client{Transport: calls}, "https://shop.example"))
	web := &httpd.Server{Handler: (&nethttp.Adapter{Handler: site}).Serve}
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()
	server.Run(calls, server.Listen(server.Addr, web.Serve))
}

func Example_gateway() {
	g, err := forward("127.0.0.1:8081", "127.0.0.1:8082")
	if err != nil {
		log.Fatal(err)
	}
	web := &httpd.Server{Handler: g.Serve}
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()
	server.Run(g, server.Listen(server.Addr, web.Serve))
}

func Example_middleware() {
	site := &httpd.Mux{}
	site.Handle("POST /add", bearer("secret", add))    // around one route
	web := &httpd.Server{Handler: noSniff(site.Serve)} // around all routes, and around the 404 of the Mux
	program.Serve("127.0.0.1:8080", web.Serve)
}

func Example_manyConnections() {
	server := program.Server{Addr: "127.0.0.1:7007", MaxConns: 100_000}
	server.Parse()
	tcp := server.Listen(server.Addr, coro.Serve(greet))
	tcp.Limits = listener.Limits{Read: 8 << 10, High: 16 << 10, ReceiveBuffer: 16 << 10, SendBuffer: 16 << 10}
	server.Run(tcp)
}

// serving runs a service for the length of the test and returns its address.
func serving(t *testing.T, handler func(*listener.Conn) act.Action, filters ...listener.Filter) string {
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: handler, Filters: filters}
	ctx, end := context.WithCancel(t.Context())
	bound, over := make(chan net.Addr, 1), make(chan error, 1)
	up := func(*act.Scheduler) error { bound <- tcp.Addr(); return nil } // after tcp.Setup
	go func() { over <- act.Run(ctx, act.Config{Schedulers: 1}, tcp.Setup, up) }()
	t.Cleanup(func() { end(); require.NoError(t, <-over) })
	return (<-bound).String()
}

func TestAdd(t *testing.T) {
	at := serving(t, (&httpd.Server{Handler: add}).Serve)
	answer, err := http.Post("http://"+at, "application/json", strings.NewReader(`{"A": 2, "B": 3}`))
	require.NoError(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"sum": 5}`, string(content))
}

func TestAddInSimulatedWorlds(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: (&httpd.Server{Handler: add}).Serve}
		_, err := w.Server("server", act.Config{}, tcp.Setup)
		require.NoError(t, err)
		w.Client("10.0.0.1:80", func(c *sim.Client) error {
			const body = `{"A": 2, "B": 3}`
			_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			if err != nil {
				return err // a fault of the world, such as a reset, is the end of this client
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil && answer.StatusCode != http.StatusOK {
				return fmt.Errorf("the status is %s", answer.Status)
			}
			return err
		})
	})
}

// worlds has ten clients in each world, which are up to a few seconds apart.
func worlds(t *testing.T, handler func(*listener.Conn) act.Action, script func(c *sim.Client, in *bufio.Reader) error) {
	sim.Test(t, func(w *sim.World) {
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: handler}
		_, err := w.Server("server", act.Config{Schedulers: 2}, tcp.Setup)
		require.NoError(t, err)
		for range 10 {
			w.Client("10.0.0.1:80", func(c *sim.Client) error {
				in := bufio.NewReader(c)
				for range 5 {
					if err := script(c, in); err != nil {
						return err
					}
					c.Sleep(time.Duration(c.Rand().IntN(int(time.Second))))
				}
				return nil
			})
		}
	})
}

func TestGreetersInSimulatedWorlds(t *testing.T) {
	for name, handler := range map[string]func(*listener.Conn) act.Action{"action": greeting, "coroutine": coro.Serve(greet)} {
		t.Run(name, func(t *testing.T) {
			worlds(t, handler, func(c *sim.Client, in *bufio.Reader) error {
				if _, err := io.WriteString(c, "Ada\n"); err != nil {
					return err
				}
				answer, err := in.ReadString('\n')
				if err == nil && answer != "hello, Ada\n" {
					return fmt.Errorf("the answer is %q", answer)
				}
				return err
			})
		})
	}
}

func TestABroadcastReachesItsSenderInSimulatedWorlds(t *testing.T) {
	worlds(t, join, func(c *sim.Client, in *bufio.Reader) error {
		line := fmt.Sprintln(c, c.Rand().Int())
		_, err := io.WriteString(c, line)
		for heard := ""; err == nil && heard != line; {
			heard, err = in.ReadString('\n')
		}
		return err
	})
}

// A client that says nothing has a minute, on the clock of the world.
func TestAGreeterLeavesASilentClient(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: greeting}
		_, err := w.Server("server", act.Config{}, tcp.Setup)
		require.NoError(t, err)
		w.Client("10.0.0.1:80", func(c *sim.Client) error {
			began := c.Now()
			_, err := io.ReadAll(c)
			if took := c.Now().Sub(began); err == nil && took > 2*time.Minute {
				return fmt.Errorf("it took %v", took)
			}
			return err
		})
	})
}

// users is a database/sql driver with one user, Ada, whose id is 1. The query for the id "slow" comes too late.
type users struct{ driver.Conn }

func (u users) Open(string) (driver.Conn, error) { return u, nil }
func (users) Close() error                       { return nil }

func (users) QueryContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	if args[0].Value == "slow" {
		return nil, context.DeadlineExceeded
	}
	return &names{left: args[0].Value == "1"}, nil
}

type names struct{ left bool }

func (*names) Columns() []string { return []string{"name"} }
func (*names) Close() error      { return nil }

func (n *names) Next(row []driver.Value) error {
	if !n.left {
		return io.EOF
	}
	n.left, row[0] = false, "Ada"
	return nil
}

func init() { sql.Register("users", users{}) }

// asked makes a request, and returns the status and the body of the answer.
func asked(t *testing.T, method, url, token, body string) string {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(content)))
}

// calling returns an http.Client that calls on a scheduler, for the length of the test.
func calling(t *testing.T) *http.Client {
	calls := &nethttp.Transport{}
	ctx, end := context.WithCancel(t.Context())
	ready, over := make(chan struct{}), make(chan error, 1)
	up := func(*act.Scheduler) error { close(ready); return nil } // after calls.Setup
	go func() { over <- act.Run(ctx, act.Config{Schedulers: 1}, calls.Setup, up) }()
	t.Cleanup(func() { end(); require.NoError(t, <-over) })
	<-ready
	return &http.Client{Transport: calls}
}

// shelf is the other server of the recipes that call one.
func shelf(w *httpd.Response, r *httpd.Request) act.Action {
	_, _ = w.WriteString("the price of ")
	_, _ = w.Write(r.Path())
	return nil
}

func TestRecipesOfTheCookbook(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	long := func(*httpd.Response, *httpd.Request) act.Action { return &listener.Sleep{For: time.Hour} }
	site := &httpd.Mux{}
	site.Handle("POST /add", noSniff(bearer("secret", add)))
	site.Handle("GET /long", within(time.Millisecond, long))
	db, err := sql.Open("users", "")
	require.NoError(t, err)
	defer db.Close()
	site.Handle("GET /users/{id}", within(time.Minute, nameOf(db)))
	web := &httpd.Server{Handler: site.Serve, OnResponse: logs(zap.New(core))}
	at := "http://" + serving(t, web.Serve)
	g, err := forward(strings.TrimPrefix(at, "http://"))
	require.NoError(t, err)
	front := "http://" + serving(t, (&httpd.Server{Handler: g.Serve}).Serve)
	shop := &client.Origin{Address: serving(t, (&httpd.Server{Handler: shelf}).Serve)}
	asking := &httpd.Mux{}
	asking.Handle("GET /coroutine/{id}", priceOf(shop))
	asking.Handle("GET /action/{id}", pricing(shop))
	asking.Handle("GET /goroutine/{id}", (&nethttp.Adapter{Handler: prices(calling(t), "http://"+shop.Address)}).Serve)
	asks := "http://" + serving(t, (&httpd.Server{Handler: asking.Serve}).Serve)

	require.Equal(t, `200 {"sum":5}`, asked(t, "POST", at+"/add", "secret", `{"A": 2, "B": 3}`))
	require.Equal(t, "400 400 Bad Request", asked(t, "POST", at+"/add", "secret", "2 + 3"))
	require.Equal(t, "401 401 Unauthorized", asked(t, "POST", at+"/add", "guess", ""))
	require.Equal(t, "504 504 Gateway Timeout", asked(t, "GET", at+"/long", "", ""))
	require.Equal(t, `200 {"sum":7}`, asked(t, "POST", front+"/add", "secret", `{"A": 3, "B": 4}`))
	require.Equal(t, "200 Ada", asked(t, "GET", at+"/users/1", "", ""))
	require.Equal(t, "404 404 Not Found", asked(t, "GET", at+"/users/2", "", ""))
	require.Equal(t, "504 504 Gateway Timeout", asked(t, "GET", at+"/users/slow", "", ""))
	require.Equal(t, "POST /add", lines.All()[0].ContextMap()["pattern"])
	require.Positive(t, lines.All()[0].ContextMap()["took"], "although it was answered in its turn")

	for _, form := range []string{"/coroutine", "/action", "/goroutine"} {
		require.Equal(t, "200 the price of /items/tea", asked(t, "GET", asks+form+"/tea", "", ""))
	}

	hello := serving(t, coro.Serve(greet), knock("open sesame"))
	for said, want := range map[string]string{"open sesame\nAda\n": "hello, Ada\n", "open\nAda\n": ""} {
		c, err := net.Dial("tcp", hello)
		require.NoError(t, err)
		_, err = io.WriteString(c, said)
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		heard, _ := io.ReadAll(c) // a reset says nothing
		require.Equal(t, want, string(heard))
		_ = c.Close()
	}
}
