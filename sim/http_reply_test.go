package sim_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// reply is what the handler does for a request. It records what the client must read.
type reply struct {
	status    int
	adds      [][2]string // fields
	announced bool        // its length
	closes    bool
	whole     bool // the content is given with SetBody
	canned    bool // it is Response.Error
	collect   int  // by WithBody, with this limit; -1: not
	tolerant  bool // it tolerates a body that cannot be read
	atOnce    bool // without an action
	early     bool // it is begun before there is an action
	steps     []step
	content   []byte

	// What has happened so far.
	begun    bool
	at       time.Time // on the wall clock
	coding   coding
	last     bool
	refused  int  // the status that replaces the answer; 0: none
	over     bool // the answer is complete
	departs  bool // the connection is closed after it, though it does not say so
	goesOn   bool // 100 (Continue) precedes it
	mayGoOn  bool // or may precede it
	trailers string
}

type coding int

const (
	byLength coding = iota
	byChunks
	byEnd
	byNothing
)

// step is a step of a handler.
type step struct {
	do   stepKind
	n    int
	from int // of a file
	d    time.Duration
}

type stepKind int

const (
	doWrite   stepKind = iota // the next n bytes of the content
	doFile                    // the next n bytes of the content, which are those of a file
	doEcho                    // what is left of the body
	doRead                    // n bytes of the body, or all
	doSleep                   // for d
	doFlush                   // only
	doYield                   // once
	doOffload                 // nothing
	doTrailer                 // is added
	doFail                    // with an error
	doPanic                   // instead
)

// gathered is how much the server keeps back to find out the length.
const gathered = 4 << 10

func (q *httpRequest) drawReply(r *rand.Rand) {
	a := &q.reply
	a.status, a.collect = pickFrom(r, 200, 200, 200, 201, 404, 503, 299), -1
	for i := range r.IntN(3) {
		a.adds = append(a.adds, [2]string{fmt.Sprint("X-Answer-", i), fmt.Sprint(r.Uint32())})
	}
	a.closes = r.IntN(100) == 0
	a.tolerant = r.IntN(4) == 0
	kind := r.IntN(17)
	switch {
	case q.httpClient.neverReads, q.httpClient.readsLate:
		kind = pickFrom(r, 4, 9, 15)
	case q.httpClient.deep:
		kind = r.IntN(2)
	}
	switch kind {
	case 0, 1, 2:
		a.atOnce = true
		q.pieces(r, r.IntN(1<<r.IntN(13)))
	case 16:
		a.atOnce = true
		q.pieces(r, q.amount(r))
	case 3:
		a.withoutContent(r)
	case 4:
		a.atOnce, a.whole = r.IntN(2) == 0, true
		a.content = content(r, q.amount(r))
	case 5:
		q.collects(r)
	case 6:
		a.read(r, len(q.body))
		q.pieces(r, r.IntN(1000))
	case 7, 8:
		if r.IntN(4) == 0 {
			q.pieces(r, q.amount(r))
		}
		a.steps = append(a.steps, step{do: doEcho})
		a.content = append(a.content, q.body...)
		a.tolerant = false
		if r.IntN(4) == 0 {
			q.pieces(r, q.amount(r))
		}
	case 9:
		q.pieces(r, r.IntN(5000))
		n := q.amount(r)
		from := r.IntN(len(randomBytes) - n + 1)
		a.content = append(a.content, randomBytes[from:from+n]...)
		a.steps = append(a.steps, step{do: doFile, n: n, from: from})
		q.pieces(r, r.IntN(1000))
		a.announced = true
	case 10:
		q.pieces(r, r.IntN(3000))
		if r.IntN(8) == 0 {
			a.steps = append(a.steps, step{do: pickFrom(r, doFail, doPanic)})
		}
	default:
		q.pieces(r, q.amount(r))
		a.read(r, len(q.body))
		q.pieces(r, r.IntN(1<<r.IntN(14)))
	}
	if !a.atOnce && kind != 5 {
		a.addPauses(r)
		a.early = r.IntN(3) == 0
	}
	a.announced = a.announced || r.IntN(3) == 0 && !a.canned && a.status != 204 && a.status != 304
}

// amount draws the length of the content.
func (q *httpRequest) amount(r *rand.Rand) int {
	switch {
	case q.httpClient.neverReads:
		return len(randomBytes)/2 + r.IntN(1000)
	case q.httpClient.readsLate: // so that the server finishes it before the client does
		return r.IntN(64 << 10)
	}
	return amount(r)
}

// pieces adds steps that write n more bytes.
func (q *httpRequest) pieces(r *rand.Rand, n int) {
	a := &q.reply
	a.content = append(a.content, content(r, n)...)
	for largest := max(1, 1<<r.IntN(17), n/50); n > 0; {
		piece := min(n, 1+r.IntN(largest))
		a.steps = append(a.steps, step{do: doWrite, n: piece})
		n -= piece
	}
}

// read adds steps that read some or all of the body.
func (a *reply) read(r *rand.Rand, most int) {
	n := pickFrom(r, 0, 1+r.IntN(most+1), 1<<30)
	if most > drainable && r.IntN(3) == 0 { // leave as much as may be left, or a byte more
		n = max(0, most-drainable-1+r.IntN(3))
	}
	if n > 0 {
		a.steps = append(a.steps, step{do: doRead, n: n})
	}
}

// withoutContent is an answer without content, or one that the server makes.
func (a *reply) withoutContent(r *rand.Rand) {
	a.status, a.atOnce = pickFrom(r, 204, 304, 404, 500), true
	if a.status >= 400 {
		a.canned, a.adds = true, [][2]string{{"Content-Type", "text/plain; charset=utf-8"}}
		a.content = []byte(errorText(a.status))
	}
}

func errorText(status int) string { return fmt.Sprintf("%d %s\n", status, reasons[status]) }

// reasons are the phrases of the statuses in use (RFC 9110 15). That of 299 is empty.
var reasons = map[int]string{200: "OK", 201: "Created", 204: "No Content", 304: "Not Modified", 400: "Bad Request", 404: "Not Found",
	408: "Request Timeout", 413: "Content Too Large", 414: "URI Too Long", 417: "Expectation Failed", 431: "Request Header Fields Too Large",
	500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable", 505: "HTTP Version Not Supported"}

// collects lets WithBody read the whole body.
func (q *httpRequest) collects(r *rand.Rand) {
	q.reply.collect = max(1, len(q.body)-pickFrom(r, 1, 0, 0, 0, -1, -1000))
	q.reply.content = content(r, r.IntN(1000))
}

// addPauses adds steps that take time.
func (a *reply) addPauses(r *rand.Rand) {
	for range r.IntN(4) {
		x := step{do: pickFrom(r, doSleep, doSleep, doFlush, doYield, doYield, doOffload, doTrailer)}
		if a.whole && x.do == doFlush {
			continue // SetBody cannot begin earlier
		}
		if x.do == doSleep {
			x.d = time.Duration(r.Int64N(int64(pickFrom(r, time.Millisecond, 100*time.Millisecond, time.Second))))
		}
		at := r.IntN(len(a.steps) + 1)
		a.steps = append(a.steps[:at:at], append([]step{x}, a.steps[at:]...)...)
	}
}

// dated stands for the value of the field Date.
var dated = strings.Repeat("\x00", len(httpd.TimeFormat))

// text returns everything before the content.
func (a *reply) text(q *httpRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nDate: %s\r\n", a.status, reasons[a.status], dated)
	switch a.coding {
	case byLength:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(a.content))
	case byChunks:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	}
	switch {
	case a.last:
		b.WriteString("Connection: close\r\n")
	case q.minor == 0:
		b.WriteString("Connection: keep-alive\r\n")
	}
	for _, f := range a.adds {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	b.WriteString("\r\n")
	return b.String()
}

// refusal returns the text of an answer by which the server refuses a request and closes.
func refusal(status int) string {
	a := reply{status: status, content: []byte(errorText(status)), last: true, adds: plain}
	return a.text(&httpRequest{})
}

var plain = [][2]string{{"Content-Type", "text/plain; charset=utf-8"}}

// answer is the handler.
func (h *httpServer) answer(w *httpd.Response, r *httpd.Request) act.Action {
	v := h.present
	q := v.receive(r)
	if q == nil {
		return nil
	}
	x := &answering{httpConn: v, q: q, a: &q.reply, out: w, in: r}
	x.checkRequest()
	x.prepare()
	switch {
	case x.a.collect >= 0:
		x.inner = httpd.WithBody(x.a.collect, x.collected)(w, r)
		x.a.mayGoOn = q.expects
		if x.inner == nil {
			x.finish()
			return nil
		}
	case x.a.atOnce:
		if x.steps(nil); x.at != len(x.a.steps) {
			h.w.Errorf("step %d of a reply that takes no time had to wait", x.at)
		}
		x.finish()
		return nil
	case x.a.early:
		for ; x.at < len(x.a.steps) && x.a.steps[x.at].do == doWrite; x.at++ {
			_ = x.step(nil, &x.a.steps[x.at])
			x.within = 0
		}
	}
	v.open++
	x.waits = true
	return x
}

// answered is called when an answer has been sent, or will not be.
func (h *httpServer) answered(w *httpd.Response, r *httpd.Request) {
	var s, n int
	if _, err := fmt.Sscanf(string(r.Path()), "/%d/%d", &s, &n); err != nil || s >= len(h.clients) || n >= len(h.clients[s].plan) {
		return // it was refused
	}
	q := h.clients[s].plan[n]
	if !q.called {
		return
	}
	if q.httpConn.logged++; q.logged {
		h.w.Errorf("an answer to %v is logged twice", q)
	}
	q.logged = true
	a, status, want := &q.reply, q.reply.status, int64(len(q.reply.content))
	if a.refused > 0 {
		status, want = a.refused, int64(len(errorText(a.refused)))
	}
	if w.Written() > want || !q.httpClient.breaks() && ((a.begun || a.refused > 0) && w.Status() != status || a.over && q.method != "HEAD" && w.Written() < want) {
		h.w.Errorf("the answer to %v has the status %d and %d bytes, but is logged with %d and %d", q, status, want, w.Status(), w.Written())
	}
}

// receive finds the request. It must be the next one of this connection, as it was sent.
func (v *httpConn) receive(r *httpd.Request) *httpRequest {
	v.called++
	var s, n int
	_, err := fmt.Sscanf(string(r.Path()), "/%d/%d", &s, &n)
	if err != nil || s >= len(v.clients) || n >= len(v.clients[s].plan) {
		v.w.Errorf("the handler sees a request that was never sent: %q", r.Path())
		return nil
	}
	q := v.clients[s].plan[n]
	if v.httpClient == nil {
		v.httpClient, q.httpClient.httpConn = q.httpClient, v
	}
	switch {
	case v.httpClient != q.httpClient || v.httpClient.httpConn != v:
		v.w.Errorf("the handler sees %v on the connection of %v", q, v.httpClient.c)
	case v.open > 0:
		v.w.Errorf("the handler sees %v before it has answered the one before", q)
	case v.stopped:
		v.w.Errorf("the handler sees %v after the last answer", q)
	case q.n != v.next:
		v.w.Errorf("the handler sees %v, but it is the turn of number %d", q, v.next)
	case q.httpClient.sent < q.from+q.head:
		v.w.Errorf("the handler sees %v, of which only %d bytes were sent", q, q.httpClient.sent-q.from)
	case q.malformed > 0:
		v.w.Errorf("the handler sees %v, which should be refused", q)
	}
	if v.c.Room() == 0 {
		v.w.Errorf("the handler sees %v, and there is no room for its answer", q)
	}
	v.next++
	q.called, q.httpConn = true, v
	return q
}

func (q *httpRequest) String() string { return fmt.Sprintf("request %d of %v", q.n, q.httpClient.c) }

// describeForReport describes a request, for the report of a failure.
func (q *httpRequest) describeForReport() string {
	a := q.reply
	a.content = nil
	return fmt.Sprintf("the request is %.500q\nwith a body of %d bytes, its reply %+v with a content of %d", q.raw[:q.head], len(q.body), a, len(q.reply.content))
}

// answering is the action of a reply. It records what the server must make of it.
type answering struct {
	*httpConn
	q        *httpRequest
	a        *reply
	out      *httpd.Response
	in       *httpd.Request
	inner    act.Action // of WithBody
	at       int        // step
	within   int        // bytes of it
	did      bool       // half of the step is done
	written  int        // of the content
	gathered int
	taken    int   // of the body
	peeked   bool  // at the body
	bad      error // why no more of the body can be read
	trailers int
	sleep    *listener.Sleep
	waits    bool // the handler has returned; before that, there is room for everything
	ordered  bool
	closed   bool
	since    time.Duration // since when it waits for more of the body
	earned   time.Duration // patience in addition to Timeouts.Body, or less
}

var errOnPurpose = errors.New("on purpose")

// checkRequest checks that the request is the one that was sent. It may be called in any turn.
func (x *answering) checkRequest() {
	r, q := x.in, x.q
	if string(r.Method()) != q.method || string(r.Path()) != q.path || string(r.Query()) != q.query || string(r.Host()) != q.host || r.Proto() != fmt.Sprintf("HTTP/1.%d", q.minor) {
		x.w.Errorf("%v is seen as %q %q?%q of %q by %s", q, r.Method(), r.Path(), r.Query(), r.Host(), r.Proto())
	}
	i := 0
	for name, value := range r.Fields() {
		if i < len(q.fields) && (string(name) != q.fields[i][0] || string(value) != q.fields[i][1]) {
			x.w.Errorf("a field of %v is seen as %q: %q, and is %q", q, name, value, q.fields[i])
		}
		i++
	}
	if i != len(q.fields) {
		x.w.Errorf("%v is seen with %d fields of %d", q, i, len(q.fields))
	}
}

// prepare sets what comes before the content.
func (x *answering) prepare() {
	x.out.SetStatus(x.a.status)
	for _, f := range x.a.adds {
		x.out.Add(f[0], f[1])
	}
	if x.a.announced {
		x.out.SetLength(int64(len(x.a.content)))
	}
	if x.a.closes {
		x.out.Close()
	}
	if n, want := x.in.Body.Length(), int64(len(x.q.body)); n != want && !x.q.chunked || n != -1 && x.q.chunked {
		x.w.Errorf("the body of %v has %d bytes by Length, and %d were sent", x.q, n, want)
	}
}

func (x *answering) Act(t *act.Task) act.Directive {
	switch {
	case x.closed:
		x.w.Errorf("the action of %v has a turn after its end", x.q)
	case x.httpConn.ordered && !x.ordered:
		x.w.Errorf("%v is answered under an order that its action was not notified of", x.q)
	}
	x.checkRequest()
	x.away = false
	var d act.Directive
	if x.inner != nil {
		d = x.inner.Act(t)
	} else {
		d = x.steps(t)
	}
	if (d == act.Wait || d == act.Async) && x.gathered > 0 {
		x.begin(false)
	}
	switch {
	case d == act.Failed:
		x.fails(t.Err())
	case d == act.Done:
		x.finish()
	case d != act.Async && x.q.method == "HEAD" && x.a.begun: // the answer is complete, so the action gets no more turns
		x.end()
	}
	return d
}

func (x *answering) Stop(*act.Task, shutdown.Order) {
	if x.ordered {
		x.w.Errorf("the action of %v is notified twice of an order", x.q)
	}
	x.ordered = true
}

func (x *answering) Close() error {
	if x.closed {
		x.w.Errorf("the action of %v is closed twice", x.q)
	}
	x.closed = true
	x.open--
	return nil
}

func (x *answering) steps(t *act.Task) act.Directive {
	for ; x.at < len(x.a.steps); x.at++ {
		if d := x.step(t, &x.a.steps[x.at]); d != act.Done {
			return d
		}
		x.within, x.did = 0, false
	}
	return act.Done
}

// step returns Done when the step is finished.
func (x *answering) step(t *act.Task, s *step) act.Directive {
	switch s.do {
	case doWrite:
		n, err := x.write(x.a.content[x.written : x.written+s.n-x.within])
		if x.within += n; err != nil {
			return listener.Next(t, err)
		}
	case doFile:
		x.begin(false)
		n, err := x.out.SendFile(x.file, int64(s.from+x.within), int64(s.n-x.within))
		x.within, x.written = x.within+int(n), x.written+int(n)
		if err != nil || x.within < s.n {
			return listener.Next(t, err)
		}
	case doEcho:
		return x.echo(t)
	case doRead:
		return x.read(t, s.n)
	case doSleep:
		return x.rest(t, s.d)
	case doFlush:
		x.begin(false)
		if err := x.out.Flush(); err != nil {
			return listener.Next(t, err)
		}
	case doTrailer:
		x.trailers++
		x.out.AddTrailer(trailer(x.trailers))
	case doYield:
		if !x.did {
			x.did = true
			return act.Yield
		}
	case doOffload:
		if !x.did {
			x.away = true
			return t.Offload(func() { x.did = true })
		}
	case doFail:
		return t.Fail(errOnPurpose)
	case doPanic:
		x.httpClient.aborted, x.stopped = true, true
		panic(errOnPurpose)
	}
	return act.Done
}

func trailer(n int) (name, value string) { return fmt.Sprint("X-Behind-", n), strings.Repeat("y", n) }

func (x *answering) rest(t *act.Task, d time.Duration) act.Directive {
	if x.sleep == nil {
		x.sleep = &listener.Sleep{For: d}
	}
	if d := x.sleep.Act(t); d != act.Done {
		return d
	}
	x.sleep = nil
	return act.Done
}

// write writes p or a part of it.
func (x *answering) write(p []byte) (int, error) {
	if x.gathered+len(p) > gathered && x.waits {
		x.begin(false)
	}
	n, err := x.out.Write(p)
	if !x.a.begun {
		x.gathered += n
	}
	x.written += n
	return n, err
}

// echo writes the body back.
func (x *answering) echo(t *act.Task) act.Directive {
	for {
		in, err := x.peek()
		switch {
		case err == io.EOF:
			return act.Done
		case err != nil:
			return listener.Next(t, err)
		}
		n, err := x.write(in)
		x.discard(n)
		if err != nil {
			return listener.Next(t, err)
		}
		if x.q.n%2 == 0 {
			return act.Yield
		}
	}
}

// read reads so many bytes of the body. Some replies tolerate a body that cannot be read.
func (x *answering) read(t *act.Task, most int) act.Directive {
	for x.within < most {
		in, err := x.peek()
		switch {
		case err == io.EOF, x.bad != nil && x.a.tolerant:
			return act.Done
		case err != nil:
			return listener.Next(t, err)
		}
		n := min(len(in), most-x.within)
		x.within += n
		x.discard(n)
	}
	return act.Done
}

func (x *answering) discard(n int) {
	x.in.Body.Discard(n)
	x.taken += n
	x.earned += min(time.Duration(n)*time.Second/240, max(0, 30*time.Second-x.patience()))
}

// peek peeks at the body.
func (x *answering) peek() ([]byte, error) {
	q := x.q
	in, err := x.in.Body.Peek()
	_, blocked := err.(act.Blocked)
	if blocked && q.expects && !x.peeked && !x.a.begun {
		x.a.goesOn = true
	}
	x.peeked = true
	x.wait(blocked)
	switch {
	case blocked:
	case err == io.EOF:
		x.ended()
	case err != nil:
		x.bad = err
		x.statusFor(err)
	case len(in) > len(q.body)-x.taken || !bytes.Equal(in, q.body[x.taken:x.taken+len(in)]):
		x.w.Errorf("the body of %v is not what was sent, somewhere in %d bytes from %d of %d on", q, len(in), x.taken, len(q.body))
	}
	return in, err
}

// ended checks the body at its end.
func (x *answering) ended() {
	q := x.q
	if x.taken != len(q.body) || q.cut || q.badBody > 0 {
		x.w.Errorf("the body of %v ends after %d bytes of %d", q, x.taken, len(q.body))
	}
	for _, f := range q.trailers {
		if got := x.in.Body.Trailer(f[0]); string(got) != f[1] {
			x.w.Errorf("a trailer of %v is seen as %q and not %q", q, got, f[1])
		}
	}
}

// patience returns how long it may still wait for the body.
func (x *answering) patience() time.Duration {
	return cmp.Or(x.times.Body, 5*time.Second) + x.earned
}

// wait records how long it waits.
func (x *answering) wait(blocked bool) {
	now := x.w.Now()
	if x.since > 0 {
		x.earned -= now - x.since
		x.since = 0
	}
	if blocked {
		x.since = max(1, now)
		if x.times.Body >= 0 && x.patience() < -1500*time.Millisecond {
			x.w.Errorf("the body of %v is waited for for %v too long", x.q, -x.patience())
		}
	}
}

// statusFor returns the status for a body that cannot be read, or another error of a handler.
func (x *answering) statusFor(err error) int {
	q, text := x.q, err.Error()
	switch {
	case errors.Is(err, errOnPurpose):
		return 500
	case strings.HasSuffix(text, "a body that comes too slowly"):
		if x.inner == nil && (x.times.Body < 0 || x.patience() > 10*time.Millisecond) {
			x.w.Errorf("%v fails as too slow, with %v left", q, x.patience())
		}
		return 408
	case strings.HasSuffix(text, "the connection has ended in the middle of a body"):
		if s := q.httpClient; (!q.cut || !s.writeClosed) && !s.gone && !s.over {
			x.w.Errorf("the body of %v seems to have ended", q)
		}
		return 400
	case x.a.collect >= 0 && strings.HasSuffix(text, "longer than the handler wants"):
		if len(q.body) <= x.a.collect {
			x.w.Errorf("the body of %v fails as longer than %d bytes, and has %d", q, x.a.collect, len(q.body))
		}
		return 413
	case q.badBody > 0 && strings.HasPrefix(text, "httpd: ") && !errors.Is(err, os.ErrDeadlineExceeded):
		if x.inner == nil && x.taken != len(q.body) {
			x.w.Errorf("the body of %v fails after %d bytes, not after %d", q, x.taken, len(q.body))
		}
		return q.badBody
	}
	if !q.httpClient.breaks() {
		x.w.Errorf("%v fails without a reason: %w", q, err)
	}
	return 500
}

// collected is called by WithBody.
func (x *answering) collected(_ *httpd.Response, _ *httpd.Request, body []byte) act.Action {
	x.peeked, x.taken = true, len(body)
	if len(body) > x.a.collect || !bytes.Equal(body, x.q.body) {
		x.w.Errorf("the body of %v is collected as %d bytes, not quite the %d that were sent", x.q, len(body), len(x.q.body))
	}
	x.ended()
	_, _ = x.write(x.a.content)
	return nil
}

// begin is called when the head of the response is made: together with the content, or before.
func (x *answering) begin(final bool) {
	a, q := x.a, x.q
	if a.begun {
		return
	}
	a.begun, a.at = true, x.in.Scheduler().Clock().Wall()
	switch {
	case a.status == 204 || a.status == 304:
		a.coding = byNothing
	case a.announced, final && (x.trailers == 0 || a.whole || q.minor == 0):
		a.coding = byLength
	case q.minor > 0:
		a.coding = byChunks
	default:
		a.coding = byEnd
	}
	known := 0 // how much of the body is left
	if !q.chunked && final {
		known = len(q.body) - x.taken
	}
	a.last = a.closes || a.coding == byEnd || x.httpConn.ordered || !q.keeps || x.bad != nil || q.expects && !x.peeked || known > drainable
}

// finish is called when the handler has answered.
func (x *answering) finish() {
	a := x.a
	if a.canned {
		x.out.Error(a.status)
	}
	if a.whole {
		x.out.SetBody(a.content)
	}
	x.begin(true)
	x.end()
}

// end is called when nothing more follows.
func (x *answering) end() {
	a, q := x.a, x.q
	a.over = true
	for n := range x.trailers {
		name, value := trailer(n + 1)
		a.trailers += name + ": " + value + "\r\n"
	}
	a.departs = !a.last && (q.badBody > 0 || q.cut || len(q.body)-x.taken > drainable)
	x.stopped = a.last || a.departs
}

// fails is called when the handler fails.
func (x *answering) fails(err error) {
	x.stopped = true
	if status := x.statusFor(err); x.a.begun {
		x.httpClient.aborted = true
	} else {
		x.a.refused = status
	}
}
