package nethttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/lane"
	"github.com/daimon-go/daimon/shutdown"
)

// Transport is an http.RoundTripper that sends requests on the schedulers of a Group, by package client. It is for goroutines,
// such as handlers of an [Adapter]: they call an http.Client, and share the connections and the bounds of Client.
//
//	web := &nethttp.Transport{}
//	// a set-up function of the Group: act.Run(ctx, act.Config{}, tcp.Setup, web.Setup)
//	api := &http.Client{Transport: web}
//
// Actions and coroutines use a client.Call, which costs less. Compared with http.Transport it has these differences:
//
//   - Answers have to keep the rules of RFC 9112 and RFC 9113, without the repairs that they allow.
//   - There is no proxy, and CONNECT is not supported. Host names have to be ASCII.
//   - It does not ask for gzip by itself. A request with Accept-Encoding gets the answer as it was sent.
//   - The time-outs of Client.Timeouts are there by default, such as 60 s for the head of an answer.
//   - Of a header's Connection, "close" has an effect, and Upgrade with it. Other fields that it names are sent.
//   - Interim responses are in httptrace.ClientTrace's Got1xxResponse and Got100Continue. Its other functions are not called.
//   - Request.Cancel, which is deprecated, has no effect: the context has.
//   - Response.Status has the registered reason of the status code.
//
// A request goes to the scheduler with the fewest requests of all Transports. The content of up to 64 KiB of a request with
// GetBody is read before the request begins, so it can be sent again if its connection was lost. Other content and all of the
// answer is streamed: at most 80 KiB are on their way between the goroutine and the scheduler in each direction. A Transport
// must not be copied. Its methods are for any goroutine, and RoundTrip panics on the thread of the scheduler that it would wait
// for.
type Transport struct {
	// Client has the Origins of the requests, their bounds and their time-outs. It must not be changed after the first request.
	Client client.Client

	seats atomic.Pointer[[]*seat]
}

// seat is a scheduler that takes requests.
type seat struct {
	s     *act.Scheduler
	trips atomic.Int64
	gone  chan struct{} // closed with the scheduler
}

var seats = act.NewLocal(func(s *act.Scheduler) *seat { return &seat{s: s, gone: make(chan struct{})} })

// Close is called with the scheduler.
func (x *seat) Close() error {
	close(x.gone)
	return nil
}

// Setup is a set-up function: it has s take requests. It keeps Run from returning until a shutdown begins, and so does each
// request after that.
func (tr *Transport) Setup(s *act.Scheduler) error {
	all := []*seat{seats.Get(s)}
	if old := tr.seats.Load(); old != nil {
		for _, x := range *old {
			if x != all[0] && !lane.IsClosed(x.gone) {
				all = append(all, x)
			}
		}
	}
	tr.seats.Store(&all)
	s.Install(open{})
	return nil
}

// open is the demon that keeps Run from returning.
type open struct{}

func (open) Stop(*act.Task, shutdown.Order) {}
func (open) Describe(d *act.Description)    { d.WaitsFor("the requests of a nethttp.Transport") }
func (open) Act(t *act.Task) act.Directive {
	if t.Order() != nil {
		return act.Done
	}
	return act.Wait
}

var (
	errNoSetup  = errors.New("nethttp: a request before Transport.Setup was called")
	errNoURL    = errors.New("nethttp: a request without a URL")
	errShort    = errors.New("nethttp: the body of the request is shorter than its ContentLength")
	errLong     = errors.New("nethttp: the body of the request is longer than its ContentLength")
	errAnswered = errors.New("nethttp: the server has answered, and takes no more of the request")
)

// wholeRequest bounds the content that is read before a request begins.
const wholeRequest = 64 << 10

// RoundTrip implements http.RoundTripper. An error is that of the request's context, or a *client.Error, or says what is wrong
// with the request.
func (tr *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, err := tr.trip(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if x.ctx.Done() != nil {
		x.stop = context.AfterFunc(x.ctx, x.cancel)
	}
	if err = x.seat.s.Post(x.begin); err != nil {
		x.seat.trips.Add(-1)
		x.end()
		return nil, err
	}
	return x.await()
}

// CloseIdleConnections closes the connections without a request, soon: http.Client.CloseIdleConnections calls it.
func (tr *Transport) CloseIdleConnections() { tr.Client.CloseIdle() }

// trip makes the trip of a request.
func (tr *Transport) trip(req *http.Request) (*trip, error) {
	if req.URL == nil {
		return nil, errNoURL
	}
	origin, err := tr.Client.Origin(req.URL.Scheme, req.URL.Host)
	if err != nil {
		return nil, err
	}
	x := &trip{req: req, ctx: req.Context(), over: make(chan struct{}), ready: make(chan struct{}, 1)}
	x.call = client.Call{Origin: origin, Method: req.Method, Target: req.URL.RequestURI(), Host: req.Host, CloseAfter: req.Close}
	x.fields()
	if trace := httptrace.ContextClientTrace(x.ctx); trace != nil && (trace.Got1xxResponse != nil || trace.Got100Continue != nil) {
		x.interims = make(chan interim, mostInterims)
		x.call.Inform = x.inform
	}
	if err := x.content(); err != nil {
		return nil, err
	}
	if x.seat = tr.choose(); x.seat == nil {
		return nil, errNoSetup
	}
	x.seat.trips.Add(1)
	return x, nil
}

// choose returns the scheduler with the fewest requests.
func (tr *Transport) choose() (least *seat) {
	all := tr.seats.Load()
	if all == nil {
		return nil
	}
	least = slices.MinFunc(*all, func(a, b *seat) int { return int(a.trips.Load() - b.trips.Load()) })
	if least.s.Internals().Here() {
		panic("nethttp: RoundTrip on the thread of a scheduler, which must not wait: use a client.Call")
	}
	return least
}

// fields gives the call the header. The call itself makes the fields that decide how the connection goes on.
func (x *trip) fields() {
	c, header := &x.call, x.req.Header
	for name, values := range header {
		if name == "Trailer" || syntax.KindOf(syntax.Bytes(name)) != syntax.Ordinary {
			continue
		}
		if name == "User-Agent" && values != nil && values[0] == "" {
			continue // as net/http does
		}
		for _, v := range values {
			c.Add(name, strings.Trim(v, " \t"))
		}
	}
	if _, named := header["User-Agent"]; !named {
		c.Add("User-Agent", "Go-http-client/1.1")
	}
	c.CloseAfter = c.CloseAfter || lists(header["Connection"], "close")
	if lists(header["Connection"], "upgrade") {
		c.Upgrade = header.Get("Upgrade")
	}
	c.Repeatable = header["Idempotency-Key"] != nil || header["X-Idempotency-Key"] != nil
}

// content gives the call the content, or prepares the lane that it comes through.
func (x *trip) content() error {
	c, req := &x.call, x.req
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	c.Length = req.ContentLength
	c.Expect = lists(req.Header["Expect"], "100-continue")
	if c.Length > 0 && c.Length <= wholeRequest && req.GetBody != nil {
		defer x.closeContent()
		content := make([]byte, c.Length)
		if _, err := io.ReadFull(req.Body, content); err == io.EOF || err == io.ErrUnexpectedEOF {
			return errShort
		} else if err != nil {
			return err
		}
		if n, _ := req.Body.Read(make([]byte, 1)); n > 0 {
			return errLong
		}
		c.Content, c.Length = content, 0
		return nil
	}
	if c.Length == 0 { // with a body it means that the length is not known
		c.Length = -1
	}
	if len(req.Trailer) > 0 && c.Length < 0 {
		names := make([]string, 0, len(req.Trailer))
		for name := range req.Trailer {
			if name = http.CanonicalHeaderKey(name); !isTrailer(name) {
				return fmt.Errorf("nethttp: a trailer %q", name)
			}
			names = append(names, name)
		}
		slices.Sort(names)
		c.Add("Trailer", strings.Join(names, ", "))
	}
	x.out = lane.From(x.over, &x.bell)
	return nil
}

// await waits for the answer, on the goroutine of RoundTrip.
func (x *trip) await() (*http.Response, error) {
	for {
		var err error
		select {
		case i := <-x.interims:
			err = x.tell(i)
		case <-x.ready:
			for err == nil && len(x.interims) > 0 {
				err = x.tell(<-x.interims)
			}
			if err == nil {
				err = x.err
			}
			if err == nil {
				if x.in == nil {
					x.end()
				}
				return x.response, nil
			}
		case <-x.ctx.Done():
			err = context.Cause(x.ctx)
		case <-x.seat.gone:
			err = act.ErrClosed
		}
		if err != nil {
			x.cancel()
			x.end()
			return nil, err
		}
	}
}

// interim is a response with a status of 1xx.
type interim struct {
	status int
	header http.Header
}

// mostInterims bounds how many wait for RoundTrip to look at them. More are left out.
const mostInterims = 8

// tell gives an interim response to the functions of the request's context.
func (x *trip) tell(i interim) error {
	trace := httptrace.ContextClientTrace(x.ctx)
	if i.status == http.StatusContinue && trace.Got100Continue != nil {
		trace.Got100Continue()
	}
	if trace.Got1xxResponse != nil {
		return trace.Got1xxResponse(i.status, textproto.MIMEHeader(i.header))
	}
	return nil
}
