package sim_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/daimon-go/daimon/httpd"
)

// pacedReader is the connection of an httpClient, for reading.
type pacedReader struct{ s *httpClient }

func (r pacedReader) Read(p []byte) (int, error) {
	s := r.s
	if s.readPause > 0 && s.c.Rand().IntN(2) == 0 {
		s.c.Sleep(time.Duration(s.c.Rand().Int64N(int64(s.readPause))))
	}
	if s.lost != nil { // a reset is reported once
		return 0, s.lost
	}
	n, err := s.c.Read(p[:min(len(p), s.readSize)])
	s.lost = err
	return n, err
}

// errOver ends the reading at a point where the connection may end.
var errOver = errors.New("it is over")

// readReplies is the strand that reads.
func (s *httpClient) readReplies() error {
	if s.neverReads {
		for begun := &s.plan[0].reply.begun; !*begun && !s.c.Disrupted() && s.w.Now() < 5*time.Minute; {
			s.c.Sleep(100 * time.Millisecond)
		}
		s.neverReads = s.plan[0].reply.begun && !s.w.HasFalseSends() // otherwise the system takes a little more with each send
	}
	s.c.Sleep(s.readDelay)
	if s.ending == fallsSilent && s.times.Head < 0 { // nothing else ends it
		_ = s.c.SetReadDeadline(s.c.Now().Add(5 * time.Minute))
	}
	for _, q := range s.plan {
		s.part = 0
		if err := s.readReply(q); err != nil {
			return err
		}
		s.read++
	}
	switch {
	case s.neverReads:
		return s.wrong("it has been waited for for %v", s.readDelay)
	case s.ending == leaves:
		return nil
	}
	return s.end()
}

// readReply reads one answer. An error means that it was the last one; errOver means that this is right.
func (s *httpClient) readReply(q *httpRequest) error {
	a := &q.reply
	if err := s.goOn(q); err != nil {
		return err
	}
	late, err := s.late(q)
	switch {
	case err != nil:
		return err
	case late:
		s.seen.tooLate++
		return s.refused(q, 408)
	case q.malformed > 0:
		return s.refused(q, q.malformed)
	case a.refused > 0:
		return s.refused(q, a.refused)
	case !a.begun:
		_, _ = s.in.Peek(40)
		p, _ := s.in.Peek(s.in.Buffered())
		return s.wrong("%.40q was read before the handler has begun to answer", p)
	}
	if err := s.text(a.text(q), a.at); err != nil {
		return err
	}
	if err := s.content(q); err != nil {
		return err
	}
	s.seen.answers++
	if len(q.body) > 0 {
		s.seen.bodies++
	}
	if a.last {
		return s.end()
	}
	return nil
}

// goOn waits for the answer, and reads 100 (Continue) before it.
func (s *httpClient) goOn(q *httpRequest) error {
	a := &q.reply
	for {
		if _, err := s.in.Peek(1); err != nil {
			return s.cut(err)
		}
		if s.continued > q.n || !a.goesOn && !a.mayGoOn {
			return nil
		}
		if a.mayGoOn {
			p, err := s.in.Peek(len("HTTP/1.1 100"))
			if err == nil && string(p) != "HTTP/1.1 100" {
				return nil
			}
		}
		if err := s.expect([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return err
		}
		s.continued, s.part = q.n+1, 0
		s.seen.continued++
	}
}

// late reports whether the answer says that the head of a request came too late.
func (s *httpClient) late(q *httpRequest) (bool, error) {
	if q.reply.begun || q.reply.refused > 0 || s.times.Head < 0 {
		return false, nil
	}
	slowPart := s.slowPart == theHead && q.n == len(s.plan)-1
	fallen := s.ending == fallsSilent && s.stop >= 0 && s.stop < q.from+q.head
	if p, _ := s.in.Peek(len("HTTP/1.1 408")); !slowPart && !fallen && (!s.c.Delayed() || string(p) != "HTTP/1.1 408") {
		return false, nil
	}
	head := s.head()
	took := s.w.Now() - q.sentAt
	if took < head-10*time.Millisecond || slowPart && took > head+5*time.Second && !s.c.Delayed() {
		return true, s.wrong("a head is too late after %v, and %v is the bound", took, head)
	}
	return true, nil
}

func (s *httpClient) head() time.Duration { return cmp.Or(s.times.Head, 10*time.Second) }

// refused reads an answer that the server itself gives.
func (s *httpClient) refused(q *httpRequest, status int) error {
	s.seen.refused++
	if err := s.text(refusal(status), time.Time{}); err != nil {
		return err
	}
	if q.method == "HEAD" {
		known := !q.vague && (status != 408 || q.reply.refused > 0) // otherwise it depends on how much of the head has arrived
		if _, err := s.in.Peek(1); known || err != nil {
			return s.end()
		}
	}
	if err := s.expect([]byte(errorText(status))); err != nil {
		return err
	}
	return s.end()
}

// content reads what follows the head.
func (s *httpClient) content(q *httpRequest) error {
	a := &q.reply
	switch {
	case q.method == "HEAD":
		return nil
	case a.coding == byLength, a.coding == byEnd:
		return s.expect(a.content)
	case a.coding == byChunks:
		return s.chunks(a)
	}
	return nil
}

// chunks reads a chunked content of any chunk sizes, and the trailers.
func (s *httpClient) chunks(a *reply) error {
	for rest := a.content; ; {
		n, err := s.size()
		switch {
		case err != nil:
			return err
		case n == 0 && (len(rest) > 0 || !a.over):
			return s.wrong("the content ends with %d bytes to come", len(rest))
		case n == 0:
			return s.expect([]byte(a.trailers + "\r\n"))
		case n > len(rest):
			return s.wrong("a chunk has %d bytes of %d at most", n, len(rest))
		}
		if err := s.expect(rest[:n]); err != nil {
			return err
		}
		if err := s.expect([]byte("\r\n")); err != nil {
			return err
		}
		rest = rest[n:]
	}
}

// size reads the size of a chunk.
func (s *httpClient) size() (int, error) {
	var line []byte
	for len(line) < 20 && !bytes.HasSuffix(line, []byte("\r\n")) {
		b, err := s.in.ReadByte()
		if err != nil {
			return 0, s.cut(err)
		}
		s.part++
		line = append(line, b)
	}
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(line, []byte("\r\n"))), 16, 32)
	if err != nil || string(line) != strconv.FormatInt(n, 16)+"\r\n" {
		return 0, s.wrong("%q is not the size of a chunk", line)
	}
	return int(n), nil
}

// expect reads exactly this text.
func (s *httpClient) expect(want []byte) error {
	got := make([]byte, len(want))
	n, err := io.ReadFull(s.in, got)
	s.part += n
	if !bytes.Equal(got[:n], want[:n]) {
		i := 0
		for got[i] == want[i] {
			i++
		}
		return s.wrong("%.60q was read instead of %.60q, after %d bytes", got[i:n], want[i:], i)
	}
	if err != nil {
		return s.cut(err)
	}
	return nil
}

// text reads the head of an answer, which was begun at that time, if it is known.
func (s *httpClient) text(want string, at time.Time) error {
	before, behind, _ := strings.Cut(want, dated)
	if err := s.expect([]byte(before)); err != nil {
		return err
	}
	date := make([]byte, len(dated))
	n, err := io.ReadFull(s.in, date)
	if s.part += n; err != nil {
		return s.cut(err)
	}
	if err := s.date(string(date), at); err != nil {
		return err
	}
	return s.expect([]byte(behind))
}

// date checks the Date of an answer that was begun at that time.
func (s *httpClient) date(text string, at time.Time) error {
	t, err := time.Parse(httpd.TimeFormat, text)
	if err != nil || t.Format(httpd.TimeFormat) != text {
		return s.wrong("%q is not a date", text)
	}
	if age := at.Sub(t); !at.IsZero() && !s.skewed && (age < 0 || age > 2100*time.Millisecond) {
		return s.wrong("the date is %v, but the answer is of %v", t, at)
	}
	return nil
}

// end expects the end of the stream.
func (s *httpClient) end() error {
	_, err := s.in.Peek(1)
	if err == nil {
		p, _ := s.in.Peek(s.in.Buffered())
		return s.wrong("%.60q was read after the last answer", p)
	}
	if err != io.EOF {
		return s.cut(err)
	}
	if s.read == len(s.plan) && !s.plan[s.read-1].reply.departs && s.ending == fallsSilent && !s.ordered && !s.breaks() && !s.silent() {
		return s.wrong("the connection was closed, %v after the last word", s.w.Now()-s.latest)
	}
	return errOver
}

// cut is called when the connection has ended. It checks whether it may end here.
func (s *httpClient) cut(err error) error {
	if !s.gone {
		s.seen.cut++
	}
	orderly := err == io.EOF || err == io.ErrUnexpectedEOF
	switch {
	case s.gone, s.c.Disrupted(), s.breaks() && (!orderly || s.part == 0 || s.broken || s.place == overUnix):
		return errOver
	case errors.Is(err, os.ErrDeadlineExceeded) && s.ending == fallsSilent:
		return errOver
	case s.ordered && s.httpConn == nil: // it was never accepted
		return errOver
	case orderly && s.part == 0 && s.mayEnd():
		return errOver
	}
	return s.wrong("the connection has ended, %d bytes into the answer: %v", s.part, err)
}

// breaks reports whether the server has a reason to break off the connection.
func (s *httpClient) breaks() bool {
	if s.gone || s.over || s.aborted || s.c.Disrupted() || s.mayCut() {
		return true
	}
	if s.readsLate {
		return false
	}
	return s.times.Head >= 0 && (s.c.Delayed() || s.readDelay > 2*time.Second) || s.limits.Linger < time.Hour && (s.c.Delayed() || s.readDelay > 2*time.Second)
}

// mayEnd reports whether the server may close the connection instead of answering the next request.
func (s *httpClient) mayEnd() bool {
	q := s.plan[s.read]
	begun := s.stop < 0 || s.stop > q.from+q.lead
	complete := s.stop < 0 || s.stop >= q.from+q.head
	switch {
	case s.read > 0 && s.plan[s.read-1].reply.departs:
		return true
	case s.ordered && !q.called && (s.arrived <= q.from+q.lead || !begun || s.w.HasFalseReceives() || s.completions): // a server does not know a request that it has not read
		s.seen.unanswered++
		return true
	case s.writeClosed:
		return !complete
	case s.ending == fallsSilent && !begun && s.times.Head >= 0:
		return s.silent()
	}
	return false
}

// silent reports whether the client was silent for so long that the server may close.
func (s *httpClient) silent() bool {
	most := s.head() - 2*time.Second // it may have been accepted before the client knew
	if s.read > 0 && (s.read == len(s.plan) || s.stop <= s.plan[s.read].from) {
		most = cmp.Or(s.times.Idle, 75*time.Second) - 10*time.Millisecond
	}
	return s.w.Now() >= s.latest+most
}

func (s *httpClient) wrong(format string, args ...any) error {
	err := fmt.Errorf("answer %d: "+format, append([]any{s.read}, args...)...)
	if s.read < len(s.plan) {
		err = fmt.Errorf("%w\n%s", err, s.plan[s.read].describeForReport())
	}
	return err
}
