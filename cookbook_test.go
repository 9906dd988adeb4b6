package daimon_test

import (
	"bufio"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
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
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// within returns a Handler that answers 504 if the action of h takes longer than d.
func within(d time.Duration, h httpd.Handler) httpd.Handler {
	return func(w *httpd.Response, r *httpd.Request) act.Action {
		a := h(w, r)
		if a == nil {
			return nil // the answer is complete
		}
		return &bounded{act.Child{Action: listener.Within(d, a)}, w}
	}
}

type bounded struct {
	act.Child
	w *httpd.Response
}

func (b *bounded) Act(t *act.Task) act.Directive {
	d := b.Child.Act(t)
	if d == act.Failed && errors.Is(t.Err(), os.ErrDeadlineExceeded) {
		b.w.StatusOnly(http.StatusGatewayTimeout)
		return act.Done
	}
	return d
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
		return act.Seq(query, act.Func(func(*act.Task) act.Directive {
			_, _ = w.WriteString(query.Value)
			return act.Done
		}))
	}
}

// logs returns an OnResponse that logs each request: its pattern and not its path, so that lines can be grouped.
func logs(log *zap.Logger) func(*httpd.Response, *httpd.Request) {
	return func(w *httpd.Response, r *httpd.Request) {
		log.Info("request", zap.ByteString("method", r.Method()), zap.String("pattern", r.Pattern()),
			zap.Int("status", w.Status()), zap.Duration("took", r.Scheduler().Now()-r.Began()))
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

// forward returns a Handler that passes requests on to another server, by the reverse proxy of net/http.
func forward(target *url.URL) httpd.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
	}}
	return (&nethttp.Adapter{Handler: proxy}).Serve
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

func Example_limits() {
	limits := &admission.Limiter{Conns: 100, Rate: 20, Messages: 50, MessageBurst: 200}
	web := &httpd.Server{Handler: httpd.Limited(limits.Take, add)}
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{limits}}
	server.Parse()
	server.Run(server.Listen(server.Addr, web.Serve))
}

func Example_tls() {
	web := &httpd.Server{Handler: add}
	encrypted := &secure.TLS{Config: &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}}
	program.Serve("127.0.0.1:8443", web.Serve, encrypted) // -tls-cert cert.pem -tls-key key.pem
}

func Example_manyConnections() {
	server := program.Server{
		Addr:     "127.0.0.1:7007",
		MaxConns: 100_000,
		Limits:   listener.Limits{Read: 8 << 10, High: 16 << 10, ReceiveBuffer: 16 << 10, SendBuffer: 16 << 10},
	}
	server.Parse()
	server.Run(server.Listen(server.Addr, coro.Serve(greet)))
}

// serving runs a service for the length of the test and returns its address.
func serving(t *testing.T, handler func(*listener.Conn) act.Action, filters ...listener.Filter) string {
	tcp := &service.TCP{Address: "127.0.0.1:0", Handler: handler, Filters: filters}
	ctx, end := context.WithCancel(t.Context())
	up, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- act.Run(ctx, act.Config{Schedulers: 1}, tcp.Setup, func(*act.Scheduler) error { close(up); return nil })
	}()
	<-up
	t.Cleanup(func() { end(); require.NoError(t, <-over) })
	return tcp.Addr().String()
}

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

func TestRecipesOfTheCookbook(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	long := func(*httpd.Response, *httpd.Request) act.Action { return &listener.Sleep{For: time.Hour} }
	site := &httpd.Mux{}
	site.Handle("POST /add", noSniff(bearer("secret", add)))
	site.Handle("GET /long", within(time.Millisecond, long))
	web := &httpd.Server{Handler: site.Serve, OnResponse: logs(zap.New(core))}
	at := "http://" + serving(t, web.Serve)
	target, err := url.Parse(at)
	require.NoError(t, err)
	front := "http://" + serving(t, (&httpd.Server{Handler: forward(target)}).Serve)

	require.Equal(t, `200 {"sum":5}`, asked(t, "POST", at+"/add", "secret", `{"A": 2, "B": 3}`))
	require.Equal(t, "400 400 Bad Request", asked(t, "POST", at+"/add", "secret", "2 + 3"))
	require.Equal(t, "401 401 Unauthorized", asked(t, "POST", at+"/add", "guess", ""))
	require.Equal(t, "504 504 Gateway Timeout", asked(t, "GET", at+"/long", "", ""))
	require.Equal(t, `200 {"sum":7}`, asked(t, "POST", front+"/add", "secret", `{"A": 3, "B": 4}`))
	require.Equal(t, "POST /add", lines.All()[0].ContextMap()["pattern"])

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
	_ = nameOf // which needs a database
}
