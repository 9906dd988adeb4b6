package client_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldCalls has a program call servers of package httpd, over both versions of HTTP, and one that breaks off, sends too much and
// answers early. What is in an answer is known from its request, and servers count what arrives. On a network whose connections last,
// a request that may be repeated never fails.
func TestWorldCalls(t *testing.T) {
	var seen tally
	for name, f := range map[string]sim.Faults{"gentle": party.Gentle(), "rough": sim.Anything(),
		"stray": sim.Faults{}.With(65536/10, "short read", "short write")} {
		t.Run(name, func(t *testing.T) {
			var all []*calling
			sim.TestWith(t, sim.Options{Faults: f}, func(w *sim.World) {
				h := &calling{w: w, seen: &seen, gentle: name != "rough", stray: name == "stray"}
				h.open(t)
				all = append(all, h)
			})
			for seed, h := range all {
				h.check(t, seed)
			}
		})
	}
	t.Logf("%+v", seen)
	party.Happened(t, "an answer is read", seen.Answers)
	party.Happened(t, "a request is repeated", seen.Repeats)
	party.Happened(t, "an answer is cut", seen.Cut)
	party.Happened(t, "an answer is left", seen.Left)
	party.Happened(t, "a request is not sent", seen.Unsent)
}

type tally struct{ Answers, Repeats, Cut, Left, Unsent, Early int }

// calling is the program of a world.
type calling struct {
	w       *sim.World
	seen    *tally
	gentle  bool
	stray   bool             // the bad server sends what nobody has asked for; it is there when its connection could be used again
	origins []*client.Origin // the last is the bad one
	asks    []*asking
	order   *party.Order
	program *sim.Server
}

// asking is a request.
type asking struct {
	n       int // its number, which is its target
	origin  int
	method  string
	length  int // of the content
	written bool
	coded   bool // its length is not announced
	repeats bool // Call.Repeatable
	expects bool
	size    int           // of the content of the answer
	pause   time.Duration // before the answer
	early   bool          // the content is not read before the answer
	sized   bool          // the answer has a Content-Length
	informs bool
	aborts  bool          // in the middle
	trick   int           // of the bad server
	within  time.Duration // it is given up; 0: never
	leaves  int           // how many bytes of the answer are read; -1: all
	arrived int           // how often the server has begun to answer it
	unsent  bool          // it has failed, and says that it was not sent
	r       *rand.Rand
}

func (q *asking) said() []byte    { return party.Noise()[q.n*977:][:q.length] }
func (q *asking) answers() []byte { return party.Noise()[q.n*1979+1:][:q.size] }

// The tricks of the bad server.
const (
	honest       = iota
	closes       // behind the answer, which does not say so
	says         // that it closes
	untilEnd     // of the connection is the answer
	cuts         // the answer
	resets       // within it
	isSilent     // and closes
	sendsMore    // than the answer: another one
	sendsMoreYet // likewise, a moment later
	tricks
)

// another is an answer to nobody.
const another = "HTTP/1.1 200 OK\r\nX-Id: other\r\nContent-Length: 5\r\n\r\nhello"

func (h *calling) open(t *testing.T) {
	w := h.w
	schedulers := party.Pick(w, 1, 2)
	times := httpd.Timeouts{Idle: party.Pick(w, 0, 20*ms, time.Second)}
	bound := party.Pick(w, nil, &client.Client{MaxConns: party.Pick(w, 1, 2, 5)})
	for i := range 3 {
		o := &client.Origin{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Limits: party.Limits(w), MaxIdle: party.Pick(w, 0, 0, 1, -1),
			IdleTimeout: party.Pick(w, 0, 10*ms, time.Second), MaxStreams: party.Pick(w, 0, 1, 3)}
		o.Limits.Read = 0
		o.MaxConns, o.Client = party.Pick(w, 0, 1, 2, 5), bound
		o.Timeouts.Wait = time.Hour
		h.origins = append(h.origins, o)
		tcp := &service.Listener{Address: o.Address, Limits: party.Limits(w), Handler: coro.Serve(h.bad)}
		if i < 2 {
			web := &httpd.Server{Handler: h.serve, Timeouts: times, MaxStreams: party.Pick(w, 0, 1, 4)}
			tcp.Handler = web.Serve
			o.Protocol = party.Pick(w, client.HTTP1, client.HTTP2)
		}
		_, err := w.Server("web", act.Config{Schedulers: party.Pick(w, 1, 2)}, append(party.Engine(w), tcp.Setup)...)
		require.NoError(t, err)
	}
	cfg := party.Config(w)
	cfg.Schedulers = schedulers
	var err error
	h.program, err = w.Server("program", cfg, append(party.Engine(w), func(s *act.Scheduler) error {
		s.Spawn(coro.New(idles))
		for range party.Pick(w, 1, 3, 8) {
			var plan []*asking
			for range party.Pick(w, 1, 4, 12) {
				plan = append(plan, h.draw(w.Rand()))
			}
			s.Spawn(coro.New(func(co *coro.Co) error { return h.call(co, plan) }))
		}
		return nil
	})...)
	require.NoError(t, err)
	h.order = party.MayEnd(w, h.program, ms, 50*ms, time.Second, 3*time.Second)
	w.At(time.Minute-1, func() {})
}

func (h *calling) draw(r *rand.Rand) *asking {
	q := &asking{n: len(h.asks), origin: r.IntN(len(h.origins)), leaves: -1,
		method: party.From(r, "GET", "GET", "GET", "HEAD", "PUT", "POST"),
		size:   r.IntN(1 << r.IntN(18)), sized: r.IntN(2) == 0, informs: r.IntN(8) == 0, aborts: r.IntN(10) == 0, early: r.IntN(8) == 0,
		repeats: r.IntN(4) == 0, trick: r.IntN(sendsMore), r: rand.New(rand.NewPCG(r.Uint64(), 0))}
	if q.method == "PUT" || q.method == "POST" {
		q.length, q.coded, q.expects = r.IntN(1<<r.IntN(17)), r.IntN(2) == 0, r.IntN(8) == 0
		q.written = r.IntN(2) == 0 && q.length > 0
	}
	if q.pause = party.From(r, 0, 0, ms, 30*ms); r.IntN(8) == 0 {
		q.within = 1 + party.Below(r, 50*ms)
	}
	if h.stray {
		q.trick, q.within = party.From(r, honest, sendsMore, sendsMoreYet), 0
	}
	if r.IntN(8) == 0 {
		q.leaves = r.IntN(q.size + 1)
	}
	h.asks = append(h.asks, q)
	return q
}

// ending reports whether a server, or the program, may refuse and cut.
func (h *calling) ending() bool { return h.order.Given || h.w.Now() >= time.Minute-1 }

// call makes the requests of a caller.
func (h *calling) call(co *coro.Co, plan []*asking) error {
	for _, q := range plan {
		err := error(nil)
		if q.within == 0 {
			err = h.exchange(co, q)
		} else {
			err = co.Within(q.within, func() error { return h.exchange(co, q) })
		}
		var failure *client.Error
		switch mayRepeat := (q.method != "POST" || q.repeats) && !q.written; {
		case err == nil:
		case !errors.As(err, &failure): // it was given up
			if q.within == 0 && !h.ending() {
				h.w.Errorf("%v: %w", q, err)
			}
		case !failure.Sent:
			h.seen.Unsent++
			if q.unsent = true; q.arrived > 0 {
				h.w.Errorf("%v has arrived, and was not sent: %w", q, err)
			}
			if h.gentle && !h.ending() && q.within == 0 && !q.written {
				h.w.Errorf("%v: %w", q, err)
			}
		case h.gentle && !h.ending() && q.origin < 2 && mayRepeat && !q.aborts && q.within == 0:
			h.w.Errorf("%v: %w", q, err)
		default:
			h.seen.Cut++
		}
		if q.r.IntN(3) == 0 {
			if err := co.Sleep(party.Below(q.r, 60*ms)); err != nil {
				return nil
			}
		}
	}
	return nil
}

// exchange makes a request, and compares the answer.
func (h *calling) exchange(co *coro.Co, q *asking) error {
	call := &client.Call{Origin: h.origins[q.origin], Method: q.method, Target: "/" + strconv.Itoa(q.n), Repeatable: q.repeats,
		Expect: q.expects && q.length > 0}
	defer call.Close()
	switch {
	case q.written && q.coded:
		call.Length = -1
	case q.written:
		call.Length = int64(q.length)
	case q.length > 0:
		call.Content = q.said()
	}
	if q.written {
		if err := co.Do(call.Begin()); err != nil {
			return err
		}
		var err error
		for piece := range slices.Chunk(q.said(), 1+q.r.IntN(30_000)) {
			if _, err = coro.Writer(co, call).Write(piece); err != nil {
				break
			}
		}
		if err == nil {
			err = call.End()
		}
		if err == client.ErrAnswered {
			h.seen.Early++
		} else if err != nil {
			return err
		}
	}
	if err := co.Do(call); err != nil {
		return err
	}
	answer := call.Response()
	defer answer.Close()
	err := h.compare(co, q, answer)
	if err == nil && h.stray {
		err = co.Sleep(100 * ms)
	}
	return err
}

func (h *calling) compare(co *coro.Co, q *asking, answer *client.Response) error {
	if q.aborts && answer.Status() == 500 {
		h.seen.Cut++
		return nil
	}
	if id := string(answer.Header("X-Id")); id != strconv.Itoa(q.n) || answer.Status() != 200 {
		h.w.Errorf("%v gets the answer of %q, with status %d", q, id, answer.Status())
	}
	in, got := coro.Reader(co, answer), 0
	want := q.answers()
	if q.method == "HEAD" {
		want = nil
	}
	for p := make([]byte, 1+q.r.IntN(30_000)); q.leaves < 0 || got < q.leaves; {
		n, err := in.Read(p)
		if got+n > len(want) || !bytes.Equal(p[:n], want[got:got+n]) {
			h.w.Errorf("%v: something else from byte %d on", q, got)
			return nil
		}
		got += n
		switch {
		case err == nil:
			continue
		case err != io.EOF:
			return err
		case got < len(want):
			h.w.Errorf("%v: %d bytes look like all of %d", q, got, len(want))
		case q.method != "HEAD" && answer.Length() < 0 && q.origin < 2 && string(answer.Trailer("X-Sum")) != strconv.Itoa(q.size):
			h.w.Errorf("%v: the trailer %q", q, answer.Trailer("X-Sum"))
		}
		h.seen.Answers++
		h.seen.Repeats += max(0, q.arrived-1)
		return nil
	}
	h.seen.Left++
	return nil
}

// check is called when the world has ended.
func (h *calling) check(t *testing.T, seed int) {
	for i, o := range h.origins {
		if n := o.Conns(); n != 0 {
			t.Errorf("%d connections to %d are counted, and there are none\nSIM_SEED=%d shows it", n, i, seed)
		}
	}
}

// find returns the request with a target, and counts it.
func (h *calling) find(target string) *asking {
	n, err := strconv.Atoi(strings.TrimPrefix(target, "/"))
	if err != nil || n >= len(h.asks) {
		h.w.Errorf("a request that nobody has made: %q", target)
		return nil
	}
	q, most := h.asks[n], 1
	if q.method != "POST" || q.repeats { // what is given to Write is not lost with the connection if there was nothing yet
		most = 2
	}
	if q.arrived++; q.arrived > most || q.unsent {
		h.w.Errorf("%v has arrived too often, or was not sent: %v", q, q.unsent)
	}
	return q
}

// heard compares the content of a request.
func (h *calling) heard(q *asking, body io.Reader) error {
	all, err := io.ReadAll(body)
	if want := q.said(); err == nil && !bytes.Equal(all, want) || !bytes.HasPrefix(want, all) {
		h.w.Errorf("%v has %d bytes of content, of %d: %w", q, len(all), len(want), err)
	}
	return err
}

// serve is the handler of the good servers.
func (h *calling) serve(w *httpd.Response, r *httpd.Request) act.Action {
	q := h.find(string(r.Target()))
	if q == nil {
		return nil
	}
	return coro.New(func(co *coro.Co) error {
		if !q.early {
			if err := h.heard(q, coro.Reader(co, &r.Body)); err != nil {
				return err
			}
		}
		if q.informs {
			_ = w.Inform(103, httpd.NewField("X-Id", strconv.Itoa(q.n)))
		}
		if err := co.Sleep(q.pause); err != nil {
			return err
		}
		w.Add("X-Id", strconv.Itoa(q.n))
		if content := q.answers(); q.method == "HEAD" {
			w.SetLength(int64(len(content)))
		} else {
			if q.sized {
				w.SetLength(int64(len(content)))
			}
			if q.aborts {
				_, _ = coro.Writer(co, w).Write(content[:q.r.IntN(len(content)+1)])
				return party.ErrOnPurpose
			}
			if _, err := coro.Writer(co, w).Write(content); err != nil {
				return err
			}
			w.AddTrailer("X-Sum", strconv.Itoa(q.size))
		}
		return nil
	})
}

// bad serves a connection of the bad server.
func (h *calling) bad(c *coro.Conn) error {
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return nil
		}
		q := h.find(r.RequestURI)
		if q == nil {
			return nil
		}
		if r.Header.Get("Expect") != "" && !q.early {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if !q.early && h.heard(q, r.Body) != nil {
			return nil
		}
		_ = c.Co().Sleep(q.pause)
		answer := q.text()
		switch q.trick {
		case cuts, resets:
			answer = answer[:q.r.IntN(len(answer))]
		case isSilent:
			if q.arrived == 1 { // the next time it answers
				return nil
			}
		case sendsMore:
			answer += another
		}
		_, err = io.WriteString(c, answer)
		switch {
		case err != nil, q.trick == closes, q.trick == says, q.trick == untilEnd, q.trick == cuts, q.early && q.length > 0:
			return nil
		case q.trick == resets:
			_ = c.Co().Sleep(ms)
			c.Under().Abort()
			return nil
		case q.trick == sendsMoreYet:
			_ = c.Co().Sleep(party.Below(q.r, ms))
			_, _ = io.WriteString(c, another)
		}
	}
}

// text is the answer of the bad server.
func (q *asking) text() string {
	head, content := "HTTP/1.1 200 OK\r\nX-Id: "+strconv.Itoa(q.n)+"\r\n", string(q.answers())
	switch {
	case q.trick == says:
		head += "Connection: close\r\n"
	case q.trick == untilEnd && q.method != "HEAD":
		return head + "\r\n" + content
	case !q.sized && q.method != "HEAD":
		return head + "Transfer-Encoding: chunked\r\n\r\n" + q.chunks(content) + "0\r\n\r\n"
	}
	head += "Content-Length: " + strconv.Itoa(q.size) + "\r\n\r\n"
	if q.method == "HEAD" {
		return head
	}
	return head + content
}

func (q *asking) chunks(content string) (text string) {
	for content != "" {
		n := 1 + q.r.IntN(len(content))
		text += fmt.Sprintf("%x\r\n%s\r\n", n, content[:n])
		content = content[n:]
	}
	return text
}

func (q *asking) String() string {
	return fmt.Sprintf("%d %s to %d: content %d, written %v, coded %v; answer %d, early %v, aborts %v, trick %d, within %v, arrived %d",
		q.n, q.method, q.origin, q.length, q.written, q.coded, q.size, q.early, q.aborts, q.trick, q.within, q.arrived)
}
