package worlds_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
)

// request is what a client asks, what the handler does for it, and what has happened.
type request struct {
	client *client
	n      int
	dice   *rand.Rand // of the handler

	// What is asked.
	method   string
	minor    int
	body     []byte
	framing  framing
	trailers http.Header
	expects  bool // 100 (Continue)
	closes   bool // the client wants no further answer
	raw      []byte
	head     int // bytes of the head
	from     int // where it begins in the bytes of its client

	// What the handler does.
	status    int
	steps     []step
	content   []byte // what it writes
	announced int    // Content-Length; -1: none
	behind    http.Header
	ending    ending
	parts     bool // it closes the connection behind the answer
	tolerant  bool // it goes on if the body cannot be read

	// What has happened.
	scheduler *act.Scheduler
	served    bool // Adapter.Serve has accepted it
	refused   bool // with 503
	begun     bool
	ctx       context.Context
	read      int  // of the body
	asked     bool // the handler has read of the body
	informed  int
	written   int
	bad       bool // the body could not be read
	failed    bool // the answer could not be written
	aborted   bool // the handler wants the connection aborted
	hijacked  bool
	outlived  bool
	over      bool
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
	aborts               // by http.ErrAbortHandler
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
	doFlush                  //
	doInform                 // 103 (Early Hints)
	doSleep                  // for d
	doEcho                   // what is left of the body, which is the rest of the content
	doBoth                   // reads the body while it writes n bytes
	doLeave                  // likewise, and does not wait for the end of the body
	doAwait                  // the end of the context
	doClose                  // the body
)

// noise is the source of all contents. A byte in the wrong place is noticed.
var noise = func() []byte {
	all := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(all)
	return all
}()

func content(r *rand.Rand, n int) []byte {
	from := r.IntN(len(noise) - n + 1)
	return noise[from : from+n : from+n]
}

// longWrite is the length from which on bytes are lent and not copied.
const longWrite = 64 << 10

// amount draws a length: a magnitude, or a bound.
func amount(r *rand.Rand) int {
	switch r.IntN(20) {
	case 0:
		return 260_000 + r.IntN(30_000) // more than the server throws away
	case 1, 2:
		return 4<<10 - 2 + r.IntN(5)
	case 3, 4:
		return 16<<10*(1+r.IntN(4)) - 2 + r.IntN(5)
	case 5:
		return longWrite + r.IntN(2*longWrite)
	}
	return r.IntN(1 << r.IntN(17))
}

func from[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// draw draws a request. The last one may be such that none can follow.
func (c *client) draw(n int, last bool) *request {
	r := c.Rand()
	q := &request{client: c, n: n, method: from(r, "GET", "GET", "POST", "POST", "PUT", "HEAD"), minor: 1, announced: -1,
		dice: rand.New(rand.NewPCG(r.Uint64(), 0)), status: from(r, 200, 200, 201, 404), tolerant: r.IntN(2) == 0}
	if last && r.IntN(4) == 0 {
		q.minor, q.closes = 0, true
	}
	if last && r.IntN(4) == 0 {
		q.closes = true
	}
	if q.method[0] == 'P' || r.IntN(10) == 0 && q.method != "HEAD" {
		q.fill(r)
	}
	q.write()
	q.plan(r, last)
	return q
}

// fill gives it a body.
func (q *request) fill(r *rand.Rand) {
	q.body, q.framing = content(r, amount(r)), from(r, sized, chunked)
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
	if q.closes && q.minor > 0 {
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

func (q *request) to() int { return q.from + len(q.raw) }

// plan draws what the handler does.
func (q *request) plan(r *rand.Rand, last bool) {
	inline := q.client.inline
	for range r.IntN(3) {
		q.add(step{do: doInform})
	}
	switch kind := r.IntN(12); {
	case kind == 0 && last && !inline && q.minor > 0:
		q.add(step{do: doRead, n: 1 << 30})
		q.ending, q.status = from(r, tunnels, leavesATunnel), http.StatusSwitchingProtocols
		return
	case kind <= 2:
		q.pieces(r, r.IntN(1<<r.IntN(13)))
	case kind <= 4:
		q.pieces(r, r.IntN(100))
		q.add(step{do: doEcho})
		q.content = append(q.content[:len(q.content):len(q.content)], q.body...)
	case kind <= 6 && !inline:
		q.pieces(r, r.IntN(1000))
		q.add(step{do: from(r, doBoth, doBoth, doLeave), n: amount(r)})
		q.content = append(q.content[:len(q.content):len(q.content)], content(r, q.steps[len(q.steps)-1].n)...)
	case kind <= 8:
		q.reads(r)
		q.pieces(r, amount(r))
	default:
		q.pieces(r, amount(r))
		q.reads(r)
		q.pieces(r, r.IntN(1<<r.IntN(14)))
	}
	if r.IntN(8) == 0 {
		q.ending = from(r, aborts, panics)
	}
	q.decorate(r)
	q.pause(r)
}

func (q *request) add(s step) { q.steps = append(q.steps, s) }

// pieces adds steps that write n more bytes.
func (q *request) pieces(r *rand.Rand, n int) {
	q.content = append(q.content[:len(q.content):len(q.content)], content(r, n)...)
	if n > longWrite && r.IntN(2) == 0 {
		q.add(step{do: doWrite, n: n})
		return
	}
	for largest := max(1, 1<<r.IntN(18), n/50); n > 0; {
		piece := min(n, 1+r.IntN(largest))
		q.add(step{do: doWrite, n: piece})
		n -= piece
	}
}

// reads adds steps that read some or all of the body.
func (q *request) reads(r *rand.Rand) {
	if n := from(r, 0, 1+r.IntN(len(q.body)+1), 1<<30, 1<<30); n > 0 {
		q.add(step{do: doRead, n: n})
	}
	if r.IntN(8) == 0 {
		q.add(step{do: doClose})
	}
}

// decorate draws what the head says.
func (q *request) decorate(r *rand.Rand) {
	switch r.IntN(8) {
	case 0, 1:
		q.announced = len(q.content)
	case 2:
		if n := len(q.content); n > 0 && q.method != "HEAD" {
			q.announced = n + 1 + r.IntN(10) // more than it writes
		}
	case 3, 4:
		q.behind = http.Header{"X-After": {fmt.Sprint(r.Uint32())}}
	}
	q.parts = r.IntN(20) == 0
}

// pause adds steps that take time, or flush.
func (q *request) pause(r *rand.Rand) {
	for range r.IntN(5) {
		s := step{do: from(r, doFlush, doFlush, doSleep)}
		if s.do == doSleep {
			if q.client.inline {
				continue
			}
			s.d = time.Duration(r.Int64N(int64(from(r, time.Millisecond, 100*time.Millisecond, 2*time.Second))))
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
