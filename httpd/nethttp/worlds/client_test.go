package worlds_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/daimon-go/daimon/sim"
)

// client is a client. One strand writes requests, another one reads the answers.
type client struct {
	*sim.Client
	*server
	n    int
	plan []*request
	behaviour

	// Of the strand that writes.
	sent   int
	broken bool // a write has failed
	left   bool // it has closed or reset the connection
	half   bool // it has closed its side
	leftAt time.Duration

	// Of the strand that reads.
	in        *bufio.Reader
	answered  int // how many were read
	continued int // one more than the number of the last request for which 100 (Continue) was read
	headed    int // likewise, of a final head
	lost      error
	tunnel    bool
	over      bool // it reads no more
}

// behaviour is how a client behaves.
type behaviour struct {
	depth   int           // unanswered requests at most
	most    int           // bytes in one write
	gap     time.Duration // at most, between two
	readGap time.Duration // likewise
	least   int           // how much it reads at a time, at most
	stop    int           // how many bytes it sends; -1: all
	parting parting
	eager   bool // it sends into a tunnel before it is there
	within  int  // bytes through a tunnel
}

// parting is what a client does when it has sent as much as it wants.
type parting int

const (
	stays      parting = iota // until it has read everything
	halfCloses                // and reads to the end
	silent                    // is silent in the middle of a body, until the server gives up
	resets
	closes
	deaf // does not read, until the server has given up
)

// gone reports whether the server may have noticed that the client is not what it was.
func (c *client) gone() bool { return c.left || c.half || c.over }

// run is the script.
func (c *client) run(s *sim.Client) error {
	c.Client = s
	r := s.Rand()
	c.behave(r)
	n := 1 + r.IntN(from(r, 1, 4, 12))
	for i := range n {
		q := c.draw(i, i == n-1)
		if i > 0 {
			q.from = c.plan[i-1].to()
		}
		c.plan = append(c.plan, q)
	}
	c.part(r)
	c.least = max(c.least, c.plan[n-1].to()/200)
	c.in = bufio.NewReaderSize(pacedReader{c}, 4<<10) // in a smaller one trailers find no room
	s.Go(func(*sim.Client) error { return c.ask() })
	err := c.read()
	c.over = true
	if c.leftAt == 0 {
		c.leftAt = c.w.Now()
	}
	return err
}

func (c *client) behave(r *rand.Rand) {
	c.behaviour = behaviour{depth: from(r, 1, 2, 100), most: 1 << 30, least: 1 << 30, stop: -1, within: r.IntN(1 << r.IntN(17)),
		eager: r.IntN(2) == 0}
	switch r.IntN(8) {
	case 0, 1:
		c.most, c.gap = 1+r.IntN(3000), time.Duration(r.Int64N(int64(20*time.Millisecond)))
	case 2:
		c.most, c.gap = 1+r.IntN(100), time.Millisecond
	case 3, 4:
		c.least, c.readGap = 1+r.IntN(3000), 1+time.Duration(r.Int64N(int64(10*time.Millisecond)))
	}
}

// part draws how it leaves, and has the last handler wait for that sometimes.
func (c *client) part(r *rand.Rand) {
	last := c.plan[len(c.plan)-1]
	if last.ending == tunnels || last.ending == leavesATunnel {
		return
	}
	c.parting = from(r, stays, stays, stays, halfCloses, halfCloses, silent, resets, closes, deaf)
	switch {
	case c.parting == deaf && (!c.timed || last.method == "HEAD" || last.announced >= 0):
		c.parting = stays
	case c.parting == deaf:
		last.pieces(r, 700_000)
		c.least, c.readGap = 1<<30, 0
	case c.parting == silent && (!c.timed || c.inline || len(last.raw) == last.head):
		c.parting = stays
	case c.parting == silent:
		c.stop = last.from + last.head + r.IntN(len(last.raw)-last.head)
	case c.parting == stays:
	case r.IntN(2) == 0:
		c.stop = r.IntN(last.to() + 1)
	case r.IntN(2) == 0 && !c.inline && max(lastIndex(last.steps, doClose), lastIndex(last.steps, doLeave)) < 0:
		last.steps = append(last.steps, step{do: doRead, n: 1 << 30}, step{do: doAwait})
	}
}

// pacedReader is the connection of a client, for reading.
type pacedReader struct{ c *client }

func (x pacedReader) Read(p []byte) (int, error) {
	c := x.c
	c.rest(c.readGap)
	if c.lost != nil { // a reset is reported once
		return 0, c.lost
	}
	n, err := c.Read(p[:min(len(p), c.least)])
	c.lost = err
	return n, err
}

// rest sleeps, half of the time.
func (c *client) rest(most time.Duration) {
	if most > 0 && c.Rand().IntN(2) == 0 {
		c.Sleep(time.Duration(c.Rand().Int64N(int64(most))))
	}
}

// ask is the strand that writes.
func (c *client) ask() error {
	for _, q := range c.plan {
		c.await(func() bool { return q.n-c.answered < c.depth })
		if q.expects {
			c.send(q.raw[:q.head])
			until := c.w.Now() + from[time.Duration](c.Rand(), 1, time.Second, time.Hour)
			c.await(func() bool { return c.continued > q.n || c.headed > q.n || c.w.Now() >= until || c.sent == c.stop })
			c.send(q.raw[q.head:])
		} else {
			c.send(q.raw)
		}
		if c.sent == c.stop {
			break
		}
	}
	if last := c.plan[len(c.plan)-1]; last.ending == tunnels || last.ending == leavesATunnel {
		c.await(func() bool { return c.tunnel || c.eager })
		c.send(noise[:c.within])
		c.await(func() bool { return c.tunnel })
		if !c.over {
			c.leave(halfCloses)
		}
		return nil
	}
	c.leave(c.parting)
	return nil
}

// send sends bytes, up to where it stops.
func (c *client) send(p []byte) {
	if c.stop >= 0 {
		p = p[:min(len(p), c.stop-c.sent)]
	}
	most := max(c.most, len(p)/200)
	for len(p) > 0 && !c.over && !c.broken {
		n := min(len(p), 1+c.Rand().IntN(most))
		c.sent += n
		if _, err := c.Write(p[:n]); err != nil {
			c.broken = true
		}
		p = p[n:]
		c.rest(c.gap)
	}
}

// leave ends what it sends.
func (c *client) leave(how parting) {
	if how != stays && how != silent && how != deaf {
		if c.Rand().IntN(2) == 0 {
			c.Sleep(time.Duration(c.Rand().Int64N(int64(3 * time.Second))))
		}
		if c.over {
			return
		}
		c.leftAt = c.w.Now()
	}
	switch how {
	case halfCloses:
		c.half = true
		c.broken = c.CloseWrite() != nil || c.broken
	case resets:
		c.left = true
		c.Abort()
	case closes:
		c.left = true
		_ = c.Close()
	}
}

// await waits until f, or until there is no need to.
func (c *client) await(f func() bool) {
	for d := 50 * time.Microsecond; !c.over && !c.broken && !f(); d = min(2*d, 20*time.Millisecond) {
		c.Sleep(d)
	}
}

// read is the strand that reads.
func (c *client) read() error {
	if c.parting == deaf {
		c.Sleep(3 * time.Minute) // functions may be late for one
		if last := c.plan[len(c.plan)-1]; last.failed {
			c.seen.deaf++
		}
	}
	for _, q := range c.plan {
		closed, err := c.answer(q)
		switch {
		case err != nil:
			return c.cut(q, err)
		case closed:
			return c.end(q)
		}
		c.answered++
	}
	if c.parting == halfCloses && c.sent >= c.plan[len(c.plan)-1].to() {
		return c.end(c.plan[len(c.plan)-1])
	}
	return nil
}

// wrong is an error that nothing excuses.
func (c *client) wrong(q *request, format string, args ...any) error {
	return fmt.Errorf("answer to %v: %s\n%s", q, fmt.Sprintf(format, args...), q.describe())
}

// incomplete is an error of the connection.
type incomplete struct {
	err   error
	begun bool // a part of the answer was read
}

func (e *incomplete) Error() string { return e.err.Error() }
func (e *incomplete) Unwrap() error { return e.err }

// answer reads an answer, and reports whether nothing follows.
func (c *client) answer(q *request) (closed bool, err error) {
	informed := 0
	for {
		if _, err := c.in.Peek(1); err != nil {
			return false, &incomplete{err, informed > 0}
		}
		r, err := http.ReadResponse(c.in, &http.Request{Method: q.method})
		switch {
		case err != nil && c.lost != nil: // err may be about half a line
			return false, &incomplete{c.lost, true}
		case err != nil:
			return false, c.wrong(q, "%v", err)
		}
		switch id := r.Header.Get("X-Id"); {
		case r.StatusCode == http.StatusContinue:
			if !q.expects || !q.asked && !c.inline || c.continued > q.n {
				return false, c.wrong(q, "100 (Continue) again, or unasked")
			}
			c.continued = q.n + 1
			continue
		case r.StatusCode == http.StatusServiceUnavailable && q.refused, r.StatusCode == http.StatusInternalServerError && q.short():
			_, err := io.Copy(io.Discard, r.Body)
			if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
				return false, c.wrong(q, "503 without Retry-After")
			}
			return r.Close, noClean(err)
		case c.inline && r.StatusCode == http.StatusBadRequest && c.half && c.stop >= 0 && c.stop < q.to(),
			c.inline && r.StatusCode == http.StatusRequestTimeout && c.timed: // the server collects the body
			_, err := io.Copy(io.Discard, r.Body)
			return r.Close, noClean(err)
		case id != q.id():
			return false, c.wrong(q, "an answer with status %d that is for %q", r.StatusCode, id)
		case r.StatusCode == http.StatusEarlyHints:
			informed++
			c.seen.interim++
			continue
		case r.StatusCode == http.StatusSwitchingProtocols && q.hijacked:
			return true, c.through(q)
		case r.StatusCode != q.status:
			return false, c.wrong(q, "status %d", r.StatusCode)
		case informed > q.informed || q.minor == 0 && informed > 0,
			q.minor > 0 && informed < q.informed && !c.inline: // an inline handler cannot wait for room
			return false, c.wrong(q, "%d interim answers", informed)
		}
		c.headed = q.n + 1
		return r.Close, c.content(q, r)
	}
}

// noClean makes an error of the connection of another error.
func noClean(err error) error {
	if err != nil {
		return &incomplete{err, true}
	}
	return nil
}

// content reads the content of an answer.
func (c *client) content(q *request, r *http.Response) error {
	p, got := make([]byte, 1+c.Rand().IntN(20_000)), 0
	for {
		n, err := r.Body.Read(p)
		if want := q.content[got:]; n > len(want) || !bytes.Equal(p[:n], want[:n]) {
			return c.wrong(q, "something else in %d bytes from %d of %d on", n, got, len(q.content))
		}
		got += n
		if err == io.EOF {
			break
		}
		if err != nil && c.lost == nil {
			return c.wrong(q, "%v", err)
		}
		if err != nil {
			return &incomplete{err, true}
		}
	}
	switch mute := q.method == "HEAD"; {
	case r.ContentLength >= 0 && q.announced >= 0 && r.ContentLength != int64(q.announced):
		return c.wrong(q, "a Content-Length of %d", r.ContentLength)
	case q.announced >= 0 && got == q.announced && !mute: // it is complete before the handler has returned
	case !q.over || q.aborted || q.failed || q.short() && !mute:
		if r.ContentLength < 0 && len(r.TransferEncoding) == 0 && !mute { // it is cut where the connection ends
			return &incomplete{io.ErrUnexpectedEOF, true}
		}
		return c.wrong(q, "it looks complete")
	case !mute && (got != len(q.content) || got != q.written):
		return c.wrong(q, "%d bytes of %d look complete", got, len(q.content))
	case !mute && q.minor > 0 && q.announced < 0 && r.Trailer.Get("X-After") != q.behind.Get("X-After"):
		return c.wrong(q, "the trailers %v", r.Trailer)
	case len(r.Trailer) > 0:
		c.seen.trailers++
	}
	c.seen.answers++
	if reason := q.parts || q.closes || c.ordered || q.bad || q.expects || !c.gentle || c.half || len(q.body) > 1<<18 || c.timed; r.Close && !reason {
		return c.wrong(q, "the connection is closed for no reason")
	}
	return nil
}

// through reads what comes through a tunnel.
func (c *client) through(q *request) error {
	c.tunnel = true
	c.seen.tunnels++
	got := make([]byte, c.within)
	n, err := io.ReadFull(c.in, got)
	if !bytes.Equal(got[:n], noise[:n]) {
		return c.wrong(q, "something else in %d bytes of a tunnel", n)
	}
	return noClean(err)
}

// end expects the end of the connection behind the last answer.
func (c *client) end(q *request) error {
	_, err := c.in.Peek(1)
	switch {
	case err == nil:
		p, _ := c.in.Peek(c.in.Buffered())
		return c.wrong(q, "%.60q was read behind the last answer", p)
	case err == io.EOF:
		return nil
	}
	return c.cut(q, &incomplete{err, false})
}

// cut is called when the connection has ended before the answer to q was read. It returns nil, or an error that a fault or
// an order has to explain, or one that nothing does.
func (c *client) cut(q *request, err error) error {
	bad := (*incomplete)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	c.seen.cut++
	orderly := !bad.begun && bad.err == io.EOF
	before := c.plan[max(0, q.n-1)]
	switch {
	case c.left, c.parting == deaf, c.aborts(q), c.mayCut(), c.ordered && q.hijacked:
		return nil
	case !bad.begun && c.ordered && !q.served && !q.refused: // the server does not know it
		return nil
	case orderly && c.half && c.stop >= 0 && c.stop < q.from+q.head: // it was not asked
		return nil
	case q.n > 0 && before.departs():
		return nil
	case !c.gentle: // a reset explains it, or the world fails
		return fmt.Errorf("answer to %v: %w\n%s", q, err, q.describe())
	}
	return c.wrong(q, "the connection has ended: %v, within the answer: %v", bad.err, bad.begun)
}

// aborts reports whether the handler of q, of a later request or of the one before has the connection aborted.
func (c *client) aborts(q *request) bool {
	for _, q := range c.plan[max(0, q.n-1):] { // the answer before may have been complete early
		if q.aborted || q.failed || q.over && q.short() {
			return true
		}
	}
	return false
}

// departs reports whether the server may close the connection behind the answer without having said so.
func (q *request) departs() bool {
	return q.bad || q.client.timed && q.read < len(q.body) || len(q.body)-q.read > 1<<18 || q.client.stop >= 0 && q.client.stop < q.to()
}

// describe is for the report of a failure.
func (q *request) describe() string {
	var steps strings.Builder
	for _, s := range q.steps {
		fmt.Fprintf(&steps, " %d:%d", s.do, max(int64(s.n), int64(s.d)))
	}
	return fmt.Sprintf("%.300q\nwith a body of %d bytes, %d of them read; status %d, %d bytes written of %d, announced %d, behind %v, "+
		"ending %d, begun %v, over %v, bad %v, failed %v, aborted %v; steps%s; the client's %+v, sent %d", q.raw[:q.head], len(q.body), q.read, q.status, q.written,
		len(q.content), q.announced, q.behind, q.ending, q.begun, q.over, q.bad, q.failed, q.aborted, steps.String(), q.client.behaviour, q.client.sent)
}
