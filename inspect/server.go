package inspect

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// viewers bounds the connections to the pages.
const viewers = 64

// site serves the pages, on a scheduler of its own: if one of the server's is stuck, the pages show it. It ends when the
// server has ended.
type site struct {
	of    *Inspector
	token []byte
	end   context.CancelFunc
	over  chan struct{}
}

// serve begins to serve the pages at x.Address.
func (x *Inspector) serve(log *zap.Logger) (*site, error) {
	host, _, err := net.SplitHostPort(x.Address)
	if err != nil {
		return nil, fmt.Errorf("inspect: the address %q: %w", x.Address, err)
	}
	if !loopback(host) && x.Token == "" {
		return nil, fmt.Errorf("inspect: %s can be reached from other machines: choose a token", x.Address)
	}
	token := x.Token
	if token == "" {
		token = rand.Text()
	}
	ctx, end := context.WithCancel(context.Background())
	v := &site{x, []byte(token), end, make(chan struct{})}
	web := &httpd.Server{Handler: v.handle}
	tcp := &service.TCP{Address: x.Address, Handler: web.Serve, MaxConns: viewers}
	listening := make(chan error, 2)
	cfg := act.Config{
		Schedulers: 1, Threads: act.Locked, Logger: log,
		Shutdown: shutdown.Policy{Kind: shutdown.Halting, Drop: true},
	}
	go func() {
		defer close(v.over)
		err := act.Run(ctx, cfg, tcp.Setup, func(*act.Scheduler) error {
			listening <- nil
			return nil
		})
		if _, cut := errors.AsType[*shutdown.Cut](err); err != nil && !cut {
			listening <- fmt.Errorf("inspect: %w", err)
		}
	}()
	if err := <-listening; err != nil {
		end()
		return nil, err
	}
	where := url.URL{Scheme: "http", Host: tcp.Addr().String(), Path: "/text", RawQuery: "token=" + url.QueryEscape(token)}
	log.Info("inspect at " + where.String())
	return v, nil
}

// loopback reports whether host names this machine and no other can reach it.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (v *site) close() {
	v.end()
	<-v.over
}

// handle answers requests with the token, for a host that no name of somebody else can stand for.
func (v *site) handle(w *httpd.Response, r *httpd.Request) act.Action {
	query, _ := url.ParseQuery(string(r.Query()))
	switch token, bearer := bytes.CutPrefix(r.Header("Authorization"), []byte("Bearer ")); {
	case !fixed(string(r.Host())):
		// A page of another site could give its name this address (DNS rebinding), and then read what is here.
		return refuse(w, 421, "The host has to be an address, or localhost.\n")
	case !bearer:
		token = []byte(query.Get("token"))
		fallthrough
	default:
		if subtle.ConstantTimeCompare(token, v.token) != 1 {
			return refuse(w, 401, "The token is missing or wrong. The server has logged it when it started.\n")
		}
	}
	if m := string(r.Method()); m != "GET" && m != "HEAD" {
		w.Add("Allow", "GET, HEAD")
		return refuse(w, 405, "There is nothing to change here.\n")
	}
	w.Add("Cache-Control", "no-store")
	w.Add("Referrer-Policy", "no-referrer")
	w.Add("X-Content-Type-Options", "nosniff")
	find := query.Get("find")
	switch path := string(r.Path()); path {
	case "/text":
		return v.report(w, "text/plain; charset=utf-8", false, func(r *Report, out *bytes.Buffer) { r.writeText(out) })
	case "/tasks":
		return v.report(w, "text/plain; charset=utf-8", true, func(r *Report, out *bytes.Buffer) { r.writeTasks(out, find) })
	case "/json", "/tasks.json":
		return v.report(w, "application/json", path == "/tasks.json", func(r *Report, out *bytes.Buffer) {
			_ = json.NewEncoder(out).Encode(r)
		})
	case "/metrics":
		return v.report(w, "text/plain; version=0.0.4; charset=utf-8", false, func(r *Report, out *bytes.Buffer) {
			r.writeMetrics(out)
		})
	}
	return refuse(w, 404, "There are /text, /tasks, /json, /tasks.json and /metrics.\n")
}

// fixed reports whether the host of a request, which may have a port, is no name that somebody else could give an address.
func fixed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || len(host) > 2 && host[0] == '[' && fixed(host[1:len(host)-1])
}

func refuse(w *httpd.Response, code int, why string) act.Action {
	w.SetStatus(code)
	w.Add("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.WriteString(why)
	return nil
}

// report answers with a Report, which is asked for and written elsewhere: the schedulers have their time to answer, and the
// text may be long.
func (v *site) report(w *httpd.Response, kind string, tasks bool, write func(*Report, *bytes.Buffer)) act.Action {
	ask := &act.Call[[]byte]{F: func() ([]byte, error) {
		var out bytes.Buffer
		write(v.of.Report(tasks), &out)
		return out.Bytes(), nil
	}}
	w.Add("Content-Type", kind)
	return act.Seq(ask, act.Func(func(*act.Task) act.Directive {
		w.SetBody(ask.Value)
		return act.Done
	}))
}
