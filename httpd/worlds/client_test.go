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

	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/sim"
)

// client is a client. One strand writes requests, another one reads the answers.
type client struct {
	party.Client
	*server
	n      int
	plan   []*request
	depth  int  // unanswered requests at most
	deaf   bool // it does not read, until the server has given up
	late   bool // it begins to read when the server could have given up the connection after its answer
	eager  bool // it sends into a tunnel before it is there
	within int  // bytes through a tunnel

	in        *bufio.Reader
	answered  int // how many were read
	continued int // one more than the number of the last request for which 100 (Continue) was read
	headed    int // likewise, of a final head
	tunnel    bool
}

// run is the script.
func (c *client) run(s *sim.Client) error {
	r := s.Rand()
	c.Client = party.Client{Client: s, World: c.w, Manners: party.Draw(r)}
	c.depth, c.within, c.eager = from(r, 1, 2, 100), r.IntN(1<<r.IntN(17)), r.IntN(2) == 0
	if c.v2 {
		return c.run2()
	}
	n, told := 1+r.IntN(from(r, 1, 4, 12)), 0
	for i := range n {
		q := c.draw(i, i == n-1)
		if i > 0 {
			q.from = c.plan[i-1].to()
		}
		c.plan = append(c.plan, q)
		told += len(q.content)
	}
	if c.late = !c.timed && n == 1 && c.last().malformed == 0 && len(c.last().body) == 0; c.late {
		c.Manners, c.Deaf = party.Prompt, 12*time.Second
	}
	c.part(r)
	c.Fit(c.last().to(), told)
	c.in = bufio.NewReaderSize(&c.Client, 4<<10) // in a smaller one trailers find no room
	s.Go(func(*sim.Client) error { return c.ask() })
	err := c.read()
	if c.Over = true; c.LeftAt == 0 {
		c.LeftAt = c.w.Now()
	}
	return err
}

func (c *client) last() *request { return c.plan[len(c.plan)-1] }

// part draws how it leaves, and has the last handler wait for that sometimes.
func (c *client) part(r *rand.Rand) {
	last := c.last()
	if last.ending == tunnels || last.ending == leavesATunnel || c.late || last.malformed > 0 {
		return
	}
	how := from(r, party.Stays, party.Stays, party.Stays, party.HalfCloses, party.HalfCloses, party.Silent, party.Resets, party.Closes, -1)
	switch {
	case how == -1 && c.timed && last.method != "HEAD" && last.announced < 0 && last.collect < 0 && !last.atOnce:
		c.deaf = true
		last.pieces(r, 700_000)
		c.ReadMost, c.ReadGap, c.Deaf = plenty, 0, 3*time.Minute // functions may be late for one
	case how == party.Silent && c.timed && c.kind != inline && len(last.raw) > last.head:
		c.Parting, c.Stop = how, last.from+last.head+r.IntN(len(last.raw)-last.head)
	case how == -1, how == party.Silent, how == party.Stays:
	default:
		if c.Parting = how; r.IntN(2) == 0 {
			c.Stop = r.IntN(last.to() + 1)
		} else if r.IntN(2) == 0 && c.kind == adapter && max(lastIndex(last.steps, doClose), lastIndex(last.steps, doLeave)) < 0 {
			last.steps = append(last.steps, step{do: doRead, n: plenty}, step{do: doAwait})
		}
	}
}

// ask is the strand that writes.
func (c *client) ask() error {
	for _, q := range c.plan {
		c.Await(func() bool { return q.n-c.answered < c.depth })
		if q.expects {
			c.Send(q.raw[:q.head])
			until := c.w.Now() + from[time.Duration](c.Rand(), 1, time.Second, time.Hour)
			c.Await(func() bool { return c.continued > q.n || c.headed > q.n || c.w.Now() >= until || c.Sent == c.Stop })
			c.Send(q.raw[q.head:])
		} else {
			c.Send(q.raw)
		}
		if c.Sent == c.Stop {
			break
		}
	}
	if last := c.last(); last.ending == tunnels || last.ending == leavesATunnel {
		c.Await(func() bool { return c.tunnel || c.eager })
		c.Send(party.Noise()[:c.within])
		c.Await(func() bool { return c.tunnel })
		c.Parting = party.HalfCloses
	} else if c.Parting != party.Stays {
		c.Rest(3 * time.Second)
	}
	c.Part()
	return nil
}

// read is the strand that reads.
func (c *client) read() error {
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
	if c.deaf && c.gentle && len(c.plan) == 1 && c.last().begun {
		return c.wrong(c.last(), "it was waited for for %v", c.w.Now())
	}
	if c.Parting == party.HalfCloses && c.Sent >= c.last().to() {
		return c.end(c.last())
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
	for informed := 0; ; {
		if _, err := c.in.Peek(1); err != nil {
			return false, &incomplete{err, informed > 0}
		}
		r, err := http.ReadResponse(c.in, &http.Request{Method: q.method})
		switch {
		case err != nil && c.Lost != nil: // err may be about half a line
			return false, &incomplete{c.Lost, true}
		case err != nil:
			return false, c.wrong(q, "%v", err)
		case r.StatusCode == http.StatusContinue:
			if !q.expects || !q.asked && c.kind == adapter || c.continued > q.n {
				return false, c.wrong(q, "100 (Continue) again, or unasked")
			}
			c.continued = q.n + 1
			continue
		case c.isRefusal(q, r.StatusCode) && r.Header.Get("X-Id") == "":
			_, err := io.Copy(io.Discard, r.Body)
			if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
				return false, c.wrong(q, "503 without Retry-After")
			}
			if q.malformed > 0 && !r.Close {
				return false, c.wrong(q, "a refusal that is not the last answer")
			}
			return r.Close, noClean(err)
		case r.Header.Get("X-Id") != q.id():
			return false, c.wrong(q, "an answer with status %d that is for %q", r.StatusCode, r.Header.Get("X-Id"))
		case r.StatusCode == http.StatusEarlyHints:
			informed++
			c.seen.interim++
			continue
		case r.StatusCode == http.StatusSwitchingProtocols && q.hijacked:
			return true, c.through(q)
		case r.StatusCode != q.status:
			return false, c.wrong(q, "status %d", r.StatusCode)
		case informed > q.informed || q.minor == 0 && informed > 0,
			q.minor > 0 && informed < q.informed && c.kind == adapter: // others cannot always wait for room
			return false, c.wrong(q, "%d interim answers", informed)
		case q.ordered && !r.Close:
			return false, c.wrong(q, "under an order the answer does not say that it is the last")
		}
		c.headed = q.n + 1
		return r.Close, c.content(q, r)
	}
}

// isRefusal reports whether the server may have given an answer with this status itself.
func (c *client) isRefusal(q *request, status int) bool {
	switch {
	case q.malformed > 0:
		return status == q.malformed
	case status == http.StatusServiceUnavailable:
		return q.refused
	case status == http.StatusInternalServerError:
		return q.short() || c.kind == action && q.aborted
	case status == http.StatusRequestEntityTooLarge:
		return q.collect >= 0 && len(q.body) > q.collect
	case status == http.StatusBadRequest:
		return c.kind != adapter && c.Half && c.Stop >= 0 && c.Stop < q.to()
	case status == http.StatusRequestTimeout:
		return c.kind != adapter && c.timed
	}
	return false
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
		if err != nil && c.Lost == nil {
			return c.wrong(q, "%v", err)
		}
		if err != nil {
			return &incomplete{c.Lost, true}
		}
	}
	switch mute := q.method == "HEAD"; {
	case r.ContentLength >= 0 && q.announced >= 0 && r.ContentLength != int64(q.announced):
		return c.wrong(q, "a Content-Length of %d", r.ContentLength)
	case q.announced >= 0 && got == q.announced && !mute: // it is complete before the handler has returned
	case mute && c.kind != inline: // likewise; that of httpd is over
	case !q.over || q.aborted || q.failed || q.short() && !mute:
		if r.ContentLength < 0 && len(r.TransferEncoding) == 0 && !mute { // it is cut where the connection ends
			return &incomplete{io.ErrUnexpectedEOF, true}
		}
		return c.wrong(q, "it looks complete")
	case !mute && (got != len(q.content) || got != q.written):
		return c.wrong(q, "%d bytes of %d look complete", got, len(q.content))
	case !mute && q.minor > 0 && q.announced < 0 && r.Trailer.Get("X-After") != q.behind.Get("X-After") &&
		(c.kind == adapter || len(r.Trailer) > 0): // a short answer of a handler has a length
		return c.wrong(q, "the trailers %v", r.Trailer)
	case len(r.Trailer) > 0:
		c.seen.trailers++
	}
	c.seen.answers++
	reason := q.parts || q.closes || c.order.Given || q.bad || q.expects || !c.gentle || c.Half || q.early || c.timed
	if r.Close && !reason {
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
	if !bytes.Equal(got[:n], party.Noise()[:n]) {
		return c.wrong(q, "something else in %d bytes of a tunnel", n)
	}
	return noClean(err)
}

// end expects the end of the connection after the last answer.
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
// a shutdown has to explain, or one that nothing does.
func (c *client) cut(q *request, err error) error {
	bad := (*incomplete)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	c.seen.cut++
	orderly := !bad.begun && bad.err == io.EOF
	switch {
	case c.Left, c.deaf, c.aborts(q), c.order.MayCut(), c.order.Given && q.hijacked:
		return nil
	case c.hasty && !c.late && c.ReadGap > 0: // the server does not wait for it
		return nil
	case !bad.begun && c.order.Given && !q.served && !q.refused: // the server does not know it
		return nil
	case orderly && c.Half && c.Stop >= 0 && c.Stop < q.from+q.head: // it was not asked
		return nil
	case q.n > 0 && c.plan[q.n-1].departs():
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

// departs reports whether the server may close the connection after the answer without having said so.
func (q *request) departs() bool {
	return q.bad || q.client.timed && q.read < len(q.body) || q.client.Stop >= 0 && q.client.Stop < q.to()
}

// describe is for the report of a failure.
func (q *request) describe() string {
	var steps strings.Builder
	for _, s := range q.steps {
		fmt.Fprintf(&steps, " %d:%d", s.do, max(int64(s.n), int64(s.d)))
	}
	return fmt.Sprintf("%.300q\nwith a body of %d bytes, %d of them read; status %d, %d bytes written of %d, announced %d, behind %v, "+
		"ending %d, at once %v, collect %d, begun %v, over %v, bad %v, failed %v, aborted %v; steps%s; the client's %+v, deaf %v, late %v, sent %d",
		q.raw[:min(q.head, len(q.raw))], len(q.body), q.read, q.status, q.written, len(q.content), q.announced, q.behind, q.ending, q.atOnce, q.collect, q.begun,
		q.over, q.bad, q.failed, q.aborted, steps.String(), q.client.Manners, q.client.deaf, q.client.late, q.client.Sent)
}
