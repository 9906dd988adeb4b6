package worlds_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/party"
)

// request is what a client asks, what the handler does for it, and what has happened.
type request struct {
	client *client
	n      int
	dice   *rand.Rand // of the handler

	// What is asked.
	method    string
	minor     int
	body      []byte
	framing   framing
	trailers  http.Header
	expects   bool // 100 (Continue)
	closes    bool // the client wants no further answer
	malformed int  // the status by which it must be refused; 0: it is valid
	raw       []byte
	head      int // bytes of the head
	from      int // where it begins in the bytes of its client
	finish    int // HTTP/2: where it ends
	stream    *stream

	// What the handler does.
	status    int
	steps     []step
	content   []byte // what it writes
	announced int    // Content-Length; -1: none
	behind    http.Header
	ending    ending
	parts     bool // it closes the connection after the answer
	tolerant  bool // it goes on if the body cannot be read
	atOnce    bool // httpd: without an action
	collect   int  // httpd: the most that WithBody may read; -1: it is not used

	// What has happened.
	conn      *connection
	scheduler *act.Scheduler
	served    bool // it has reached the handler, or the Adapter has accepted it
	refused   bool // with 503
	begun     bool
	ctx       context.Context // nil: httpd
	read      int             // of the body
	asked     bool            // the handler has read of the body
	informed  int
	ended     bool // the handler has seen the end of the body
	headed    bool // the handler has made the head of its answer
	early     bool // too early to know whether the connection can go on
	ordered   bool // during a shutdown
	written   int
	bad       bool // the body could not be read
	failed    bool // the answer could not be written
	aborted   bool // the handler wants the connection aborted
	hijacked  bool
	outlived  bool
	over      bool
	logged    bool
	returned  bool // httpd: the handler's action is closed, or there is none
	gone      bool // HTTP/2: the client has reset its stream
}

type framing int

const (
	bodiless framing = iota
	sized
	chunked
)

// ending is how a handler ends.
type ending int

const (
	returns       ending = iota
	aborts               // by http.ErrAbortHandler, or an error
	panics               // with another value
	tunnels              // hijacks the connection, and echoes
	leavesATunnel        // likewise, and returns before that
)

// step is a step of a handler.
type step struct {
	do stepKind
	n  int
	d  time.Duration
}

type stepKind int

const (
	doRead   stepKind = iota // n bytes of the body, or all
	doWrite                  // the next n bytes of the content
	doFile                   // likewise, bytes of a file
	doFlush                  //
	doInform                 // 103 (Early Hints)
	doSleep                  // for d
	doEcho                   // what is left of the body, which is the rest of the content
	doBoth                   // reads the body while it writes n bytes
	doLeave                  // likewise, and does not wait for the end of the body
	doAwait                  // the end of the context
	doClose                  // the body
)

// longWrite is the length from which on bytes are lent and not copied.
const longWrite = 64 << 10

// drained is how much of a body the server throws away to keep the connection.
const drained = 256 << 10

// amount draws a length: a magnitude, or a bound.
func amount(r *rand.Rand) int {
	switch r.IntN(20) {
	case 0:
		return drained - 2000 + r.IntN(30_000)
	case 1, 2:
		return 4<<10 - 2 + r.IntN(5)
	case 3, 4:
		return 16<<10*(1+r.IntN(4)) - 2 + r.IntN(5)
	case 5:
		return longWrite + r.IntN(2*longWrite)
	}
	return r.IntN(1 << r.IntN(17))
}

// draw draws a request. The last one may be such that none can follow.
func (c *client) draw(n int, last bool) *request {
	r := c.Rand()
	q := &request{client: c, n: n, method: from(r, "GET", "GET", "POST", "POST", "PUT", "HEAD"), minor: 1, announced: -1, collect: -1,
		dice: rand.New(rand.NewPCG(r.Uint64(), 0)), status: from(r, 200, 200, 201, 404), tolerant: r.IntN(2) == 0}
	switch {
	case c.v2:
	case last && r.IntN(10) == 0:
		q.malform(r)
		return q
	case last && r.IntN(4) == 0:
		q.minor, q.closes = 0, true
	case last && r.IntN(4) == 0:
		q.closes = true
	}
	if q.method[0] == 'P' || r.IntN(10) == 0 && q.method != "HEAD" {
		q.fill(r)
	}
	if q.plan(r, last); !c.v2 {
		q.write()
	}
	return q
}

// malform makes it one that must be refused, with more after it.
func (q *request) malform(r *rand.Rand) {
	bad := from(r, []struct {
		status int
		text   string
	}{
		{400, "GET / HTTP/1.1\nHost: a\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"},
		{431, "GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 101) + "\r\n"},
		{501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
		{505, "GET / HTTP/2.0\r\n\r\n"},
	}...)
	q.method, q.malformed = bad.text[:4], bad.status
	q.raw = []byte(bad.text + strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", r.IntN(3)))
	q.head = len(q.raw)
}

// fill gives it a body.
func (q *request) fill(r *rand.Rand) {
	q.body, q.framing = party.Content(r, amount(r)), from(r, sized, chunked)
	if q.minor == 0 {
		q.framing = sized
	}
	if q.framing == chunked && r.IntN(3) == 0 {
		q.trailers = http.Header{"X-Behind": {fmt.Sprint(r.Uint32())}}
	}
	q.expects = q.minor > 0 && len(q.body) > 0 && r.IntN(6) == 0
}

// id names it, in its target and in its answer.
func (q *request) id() string { return fmt.Sprintf("/%d/%d", q.client.n, q.n) }

func (q *request) String() string { return fmt.Sprintf("request %d of %v", q.n, q.client.Client) }

// write makes the bytes of the request.
func (q *request) write() {
	r := q.client.Rand()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.%d\r\nHost: world\r\nX-Id: %s\r\n", q.method, q.id(), q.minor, q.id())
	switch q.framing {
	case sized:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(q.body))
	case chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	}
	if q.trailers != nil {
		b.WriteString("Trailer: X-Behind\r\n")
	}
	if q.expects {
		b.WriteString("Expect: 100-continue\r\n")
	}
	if q.ending == tunnels {
		b.WriteString("Connection: upgrade\r\nUpgrade: echo\r\n")
	} else if q.closes && q.minor > 0 {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	q.head = b.Len()
	if q.framing == chunked {
		for largest, rest := max(1<<r.IntN(17), len(q.body)/100), q.body; len(rest) > 0; {
			n := min(1+r.IntN(largest), len(rest))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		b.WriteString("0\r\n")
		for name, values := range q.trailers {
			fmt.Fprintf(&b, "%s: %s\r\n", name, values[0])
		}
		b.WriteString("\r\n")
	} else {
		b.Write(q.body)
	}
	q.raw = []byte(b.String())
}

// to returns where it ends in the bytes of its client.
func (q *request) to() int {
	if q.client.v2 {
		return cmp.Or(q.finish, plenty)
	}
	return q.from + len(q.raw)
}

// plan draws what the handler does.
func (q *request) plan(r *rand.Rand, last bool) {
	kind := q.client.kind
	for range r.IntN(3) {
		q.add(step{do: doInform})
	}
	switch what := r.IntN(12); {
	case what == 0 && last && kind != inline && q.minor > 0 && !q.closes && (kind == action || !q.client.v2):
		q.add(step{do: doRead, n: plenty})
		if q.ending, q.status = from(r, tunnels, leavesATunnel), http.StatusSwitchingProtocols; q.client.v2 {
			q.ending = tunnels
		}
		return
	case what == 1 && kind == action:
		q.collect, q.steps = max(1, len(q.body)-from(r, 1, 0, 0, -1, -1000)), nil
		q.pieces(r, r.IntN(1000))
		return
	case what <= 2:
		q.pieces(r, r.IntN(1<<r.IntN(13)))
		q.atOnce = kind == action && len(q.content) < 1000 && lastIndex(q.steps, doFile) < 0
	case what <= 4:
		q.pieces(r, r.IntN(100))
		q.add(step{do: doEcho})
		q.extend(q.body)
	case what <= 6 && kind == adapter:
		q.pieces(r, r.IntN(1000))
		q.add(step{do: from(r, doBoth, doBoth, doLeave), n: amount(r)})
		q.tolerant = q.tolerant || lastIndex(q.steps, doLeave) >= 0 // it does not wait to learn whether the body can be read
		q.extend(party.Content(r, q.steps[len(q.steps)-1].n))
	case what <= 8:
		q.reads(r)
		q.pieces(r, amount(r))
	default:
		q.pieces(r, amount(r))
		q.reads(r)
		q.pieces(r, r.IntN(1<<r.IntN(14)))
	}
	if r.IntN(8) == 0 && !q.atOnce {
		q.ending = from(r, aborts, panics)
	}
	q.decorate(r)
	if !q.atOnce {
		q.pause(r)
	}
}

const plenty = 1 << 30

func (q *request) add(s step) { q.steps = append(q.steps, s) }

// extend adds to what the handler writes.
func (q *request) extend(p []byte) {
	q.content = append(q.content[:len(q.content):len(q.content)], p...)
}

// pieces adds steps that write n more bytes.
func (q *request) pieces(r *rand.Rand, n int) {
	q.extend(party.Content(r, n))
	if n > longWrite && r.IntN(2) == 0 {
		q.add(step{do: doWrite, n: n})
		return
	}
	for largest := max(1, 1<<r.IntN(18), n/50); n > 0; {
		s := step{do: doWrite, n: min(n, 1+r.IntN(largest))}
		if q.client.kind == action && r.IntN(8) == 0 {
			s.do = doFile
		}
		q.add(s)
		n -= s.n
	}
}

// reads adds steps that read some or all of the body.
func (q *request) reads(r *rand.Rand) {
	if n := from(r, 0, 1+r.IntN(len(q.body)+1), plenty, plenty); n > 0 {
		q.add(step{do: doRead, n: n})
	}
	if q.client.kind != action && r.IntN(8) == 0 {
		q.add(step{do: doClose})
	}
}

// decorate draws what the head says.
func (q *request) decorate(r *rand.Rand) {
	switch r.IntN(8) {
	case 0, 1:
		q.announced = len(q.content)
	case 2:
		if n := len(q.content); n > 0 && q.method != "HEAD" && q.client.kind != action {
			q.announced = n + 1 + r.IntN(10) // more than it writes
		}
	case 3, 4:
		q.behind = http.Header{"X-After": {fmt.Sprint(r.Uint32())}}
	}
	if lastIndex(q.steps, doFile) >= 0 {
		q.announced = len(q.content)
	}
	q.parts = r.IntN(20) == 0
}

// pause adds steps that take time, or flush.
func (q *request) pause(r *rand.Rand) {
	for range r.IntN(5) {
		s := step{do: from(r, doFlush, doFlush, doSleep)}
		if s.do == doSleep {
			if q.client.kind == inline {
				continue
			}
			s.d = party.Below(r, from(r, time.Millisecond, 100*time.Millisecond, 2*time.Second))
		}
		at := r.IntN(len(q.steps) + 1)
		if s.do == doFlush { // interim answers come before the head
			at = max(at, 1+lastIndex(q.steps, doInform))
		}
		q.steps = append(q.steps[:at:at], append([]step{s}, q.steps[at:]...)...)
	}
}

// short reports whether the handler announces more than it writes.
func (q *request) short() bool { return q.announced > len(q.content) }

// lastIndex returns the index of the last step of a kind, -1 if there is none.
func lastIndex(steps []step, do stepKind) int {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].do == do {
			return i
		}
	}
	return -1
}
