package sim_test

import (
	"bufio"
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/daimon-go/daimon/sim"
)

// httpClient is a client. One strand writes requests, another one reads the answers.
type httpClient struct {
	*httpServer
	n        int
	place    string
	c        *sim.Client
	plan     []*httpRequest
	httpConn *httpConn // its connection at the server; nil: not accepted
	behaviour

	// Of the strand that writes.
	out         []byte // to be sent
	sent        int    // bytes that were sent
	latest      time.Duration
	writeClosed bool // it has closed its write side
	gone        bool // it has closed or reset the connection
	broken      bool // a write has failed

	// Of the strand that reads.
	in        *bufio.Reader
	read      int // answers that were read
	part      int // bytes read of the present one
	continued int // one more than the number of the last request for which 100 (Continue) was read
	lost      error
	over      bool // it reads no more

	aborted bool // the server has a reason to break off the connection
	arrived int  // bytes that had arrived a while before the order; -1: the connection was not accepted
}

// behaviour is how an httpClient behaves.
type behaviour struct {
	deep      bool          // sends very many requests at once
	depth     int           // unanswered requests at most
	most      int           // bytes in one write
	gap       time.Duration // at most, between two
	readDelay time.Duration // before it begins to read
	readSize  int           // bytes in one read
	readPause time.Duration // at most, between two
	stop      int           // bytes that it sends; -1: all
	slowPart  slowPart      // of the last request, too slowly
	ending    ending

	neverReads bool // requests very much, and does not read
	readsLate  bool // requests as much, and reads late
}

// slowPart is what is sent byte by byte.
type slowPart int

const (
	nothing slowPart = iota
	theHead
	theBody
)

// ending is what an httpClient does when it has sent everything, or as much as it wants.
type ending int

const (
	leaves      ending = iota // when it has read everything
	halfCloses                // and reads to the end
	fallsSilent               // is silent, and waits for the server
	resets                    // at some time
	closes                    // at some time
)

// run is the script.
func (s *httpClient) run(c *sim.Client) error {
	s.c = c
	s.seen.connections++
	s.drawBehaviour(c.Rand())
	s.drawRequests(c.Rand())
	s.in = bufio.NewReaderSize(pacedReader{s}, 16+c.Rand().IntN(5000))
	c.Go(s.writeRequests)
	err := s.readReplies()
	s.over = true
	if err == errOver {
		return nil
	}
	return err
}

func (s *httpClient) drawBehaviour(r *rand.Rand) {
	s.behaviour = behaviour{depth: 1 + r.IntN(32), most: 1 << 30, readSize: 1 << 30, stop: -1}
	s.ending = pickFrom(r, leaves, leaves, leaves, halfCloses, halfCloses, halfCloses, halfCloses, fallsSilent, fallsSilent, resets, closes)
	switch r.IntN(14) {
	case 0:
		s.deep, s.depth, s.readDelay = true, 1<<30, time.Duration(r.Int64N(int64(2*time.Second)))
	case 1, 2:
		s.depth = 1
	case 3:
		s.most, s.gap = 1, time.Millisecond
	case 4, 5:
		s.most, s.gap = 1+r.IntN(2000), time.Duration(r.Int64N(int64(50*time.Millisecond)))
	case 6, 7:
		s.readSize, s.readPause = 1+r.IntN(2000), 1+time.Duration(r.Int64N(int64(10*time.Millisecond)))
	case 8:
		s.readDelay = time.Duration(r.Int64N(int64(pickFrom(r, 2*time.Second, 200*time.Second))))
	case 9:
		if s.times.Write >= 0 && r.IntN(3) == 0 {
			s.neverReads, s.readDelay, s.ending = true, 3*cmp.Or(s.times.Write, time.Minute)+5*time.Second, leaves
		}
	case 10, 11:
		if s.times.Write <= 0 && s.limits.Linger < 12*time.Second {
			s.readsLate, s.readDelay, s.ending = true, 12*time.Second, leaves
		}
	}
}

// drawRequests draws the requests.
func (s *httpClient) drawRequests(r *rand.Rand) {
	n := 1 + r.IntN(1<<r.IntN(8))
	switch {
	case s.deep:
		n = 200 + r.IntN(200)
	case s.neverReads, s.readsLate:
		n = 1
	}
	asked, told := 0, 0
	for i := range n {
		q := s.drawRequest(i, i == n-1)
		q.from = asked
		asked, told = q.to(), told+len(q.reply.content)
		s.plan = append(s.plan, q)
	}
	s.readSize = max(s.readSize, told/300)
	last := s.plan[n-1]
	switch {
	case s.ending == leaves && n > 1 && last.malformed == 0 && s.times.Head >= 0 && r.IntN(3) == 0:
		if s.slowPart = theHead; len(last.raw)-last.head > 2*slowBytes && last.badBody == 0 {
			s.slowPart = theBody
		} else if last.method == "HEAD" || last.lead > 0 { // it is not known how much of it counts
			s.slowPart = nothing
		}
	case s.ending == leaves:
	case s.ending == resets, s.ending == closes:
		s.stop = r.IntN(asked + 1)
	case last.malformed == 0 && r.IntN(3) == 0: // within the last one
		s.stop = last.from + pickFrom(r, 0, r.IntN(len(last.raw)), last.head+r.IntN(len(last.raw)-last.head+1))
	}
	for _, q := range s.plan {
		q.cut = s.stop >= 0 && s.stop < q.to()
	}
	last.cut = last.cut || s.slowPart == theBody
}

// writeRequests is the strand that writes.
func (s *httpClient) writeRequests(*sim.Client) error {
	for _, q := range s.plan {
		s.await(func() bool { return q.n-s.read < s.depth })
		if s.over || s.broken {
			return nil
		}
		q.sentAt = s.w.Now()
		switch {
		case s.slowPart != nothing && q.n == len(s.plan)-1:
			s.sendSlowly(q)
			return nil
		case q.expects:
			s.say(q.raw[:q.head])
			s.expecting(q)
			s.say(q.raw[q.head:])
		default:
			s.say(q.raw)
		}
		if s.stop >= 0 && s.stop <= q.to() {
			break
		}
	}
	s.flush()
	s.leave()
	return nil
}

// expecting waits for 100 (Continue), or not so long.
func (s *httpClient) expecting(q *httpRequest) {
	s.flush()
	patience := pickFrom(s.c.Rand(), 1, time.Second, time.Hour)
	if s.readDelay > 0 || s.readPause > 0 {
		patience = min(patience, time.Second)
	}
	until := s.w.Now() + patience
	if s.stop < 0 || s.stop > q.from+q.head {
		s.await(func() bool { return s.continued > q.n || s.read == q.n && s.part > 0 || s.w.Now() >= until })
	}
}

// slowBytes is how many bytes it sends one by one. That takes longer than any of the timeouts in use.
const slowBytes = 40

// sendSlowly sends some bytes one by one.
func (s *httpClient) sendSlowly(q *httpRequest) {
	s.await(func() bool { return s.read == q.n })
	q.sentAt = s.w.Now()
	left := q.raw
	if s.slowPart == theBody {
		fast := q.head + s.c.Rand().IntN(len(left)-q.head-slowBytes) // comes at once
		s.out, left = append(s.out, left[:fast]...), left[fast:]
	}
	for _, b := range left[:min(slowBytes, len(left)-1)] {
		s.out = append(s.out, b)
		s.flush()
		if s.c.Sleep(time.Second); s.over || s.broken {
			return
		}
	}
}

// leave ends the requests.
func (s *httpClient) leave() {
	switch r := s.c.Rand(); s.ending {
	case halfCloses:
		s.writeClosed = true
		s.broken = s.c.CloseWrite() != nil || s.broken
	case resets, closes:
		if s.c.Sleep(time.Duration(r.Int64N(int64(200 * time.Millisecond)))); s.over {
			return
		}
		if s.gone = true; s.ending == resets {
			s.c.Abort()
		} else {
			_ = s.c.Close()
		}
	}
}

// say sends bytes now, or together with more.
func (s *httpClient) say(p []byte) {
	s.out = append(s.out, p...)
	if s.c.Rand().IntN(3) == 0 || len(s.out) > 1000 {
		s.flush()
	}
}

func (s *httpClient) flush() {
	if s.stop >= 0 {
		s.out = s.out[:max(0, min(len(s.out), s.stop-s.sent))]
	}
	r, p := s.c.Rand(), s.out
	most := s.most
	switch {
	case s.gap > time.Millisecond:
		most = max(most, len(p)/20)
	case s.gap > 0:
		most = max(most, len(p)/500)
	}
	for len(p) > 0 && !s.over && !s.broken && !s.gone {
		n := min(len(p), 1+r.IntN(most))
		s.sent += n
		if _, err := s.c.Write(p[:n]); err != nil {
			s.broken = true
		}
		s.latest = s.w.Now()
		p = p[n:]
		if s.gap > 0 && r.IntN(2) == 0 {
			s.c.Sleep(time.Duration(r.Int64N(int64(s.gap))))
		}
	}
	s.out = s.out[:0]
}

// await sends what is pending, and waits until f.
func (s *httpClient) await(f func() bool) {
	for d := 50 * time.Microsecond; !s.over && !s.broken && !f(); d = min(2*d, 20*time.Millisecond) {
		if s.flush(); !f() {
			s.c.Sleep(d)
		}
	}
}
