package httpd

import (
	"math/bits"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
)

// buffer returns out, which has memory from now on.
func (x *http2Conn) buffer() []byte {
	if x.out == nil {
		if x.out = x.cache.frames.Get(); x.out == nil {
			x.out = make([]byte, 0, 4<<10)
		}
	}
	return x.out
}

// transmit sends what there is to send, as far as the client takes it, and reports whether there may be more.
func (x *http2Conn) transmit(t *act.Task) (more bool) {
	for range fillsATurn {
		x.fill()
		if len(x.out) == 0 || x.phase == lost {
			if x.out != nil {
				x.cache.frames.Put(x.out)
				x.out = nil
			}
			return false
		}
		n, err := x.give(x.out)
		if n == len(x.out) {
			x.out = x.out[:0]
			continue
		}
		x.out = append(x.out[:0], x.out[n:]...)
		blocked, is := err.(act.Blocked)
		switch {
		case err == nil:
			return true
		case !is:
			x.lose(err)
			return false
		case x.stalled(x.writeTimeout()):
			x.cache.counts.floods[ofSlow]++
			x.lose(ErrSlow)
			x.note(t, "a connection is cut", ErrSlow)
			return false
		}
		blocked.Arm(t)
		x.timer.WakeAt(t, x.pace.until())
		return false
	}
	return x.ready.any()
}

// clear reports whether a stream may add a frame to out in a turn of its own: nobody waits, and there is room. It makes room as
// the turn of the connection does.
func (x *http2Conn) clear() bool {
	if len(x.out) >= fullOut && x.conn.Queued() == 0 {
		n, _ := x.give(x.out) // an error comes again
		x.out = append(x.out[:0], x.out[n:]...)
	}
	return len(x.out) < fullOut && !x.ready.any()
}

// fill adds the DATA of ready streams to out: one frame of each, by urgency.
func (x *http2Conn) fill() {
	for len(x.out) < fullOut {
		s := x.ready.take()
		if s == nil {
			return
		}
		s.queued = false
		if !s.sendable() { // it was reset meanwhile
			continue
		}
		n := min(s.pending(), http2.MaxFrame)
		if n > 0 && x.outflow.Room() == 0 {
			s.queued = true
			x.starved = append(x.starved, s)
			continue
		}
		if s.sendData(min(n, s.outflow.Room(), x.outflow.Room())); !s.settle() {
			x.schedule(s)
		}
	}
}

// feed is called when the client has made the window of the connection larger.
func (x *http2Conn) feed() {
	for _, s := range x.starved {
		s.queued = false
		x.schedule(s)
	}
	x.starved = x.starved[:0]
}

// schedule puts a stream among the ready ones, if it has something to send and its client has room for that.
func (x *http2Conn) schedule(s *stream) {
	if !s.queued && s.sendable() {
		s.queued = true
		x.ready.add(s)
		x.waker.Wake()
	}
}

// head begins the field block of a response.
func (x *http2Conn) head(status int) []byte {
	to := x.cache.scratch[:0]
	if x.begins {
		x.begins = false
		to = http2.AppendNoTable(to)
	}
	return http2.AppendStatus(to, status)
}

// sendReset ends a stream by RST_STREAM. Frames that are on their way to it mean nothing.
func (x *http2Conn) sendReset(id uint32, code http2.Code) {
	x.out = http2.AppendRST(x.buffer(), id, code)
	x.closed.add(id, max(mostStreams, x.mostStreams()))
	x.waker.Wake()
}

// queues has the ready streams of each urgency (RFC 9218 4.1). Streams of the same urgency take turns.
type queues struct {
	last [8]*stream // of each urgency; its behind is the first one
	some uint8      // a bit for each urgency that has streams
}

func (q *queues) any() bool { return q.some != 0 }

func (q *queues) add(s *stream) {
	u := s.head.Urgency
	if last := q.last[u]; last == nil {
		s.behind = s
	} else {
		s.behind, last.behind = last.behind, s
	}
	q.last[u], q.some = s, q.some|1<<u
}

// take takes the first stream of the most urgent ones.
func (q *queues) take() *stream {
	if q.some == 0 {
		return nil
	}
	u := bits.TrailingZeros8(q.some)
	last := q.last[u]
	s := last.behind
	if s == last {
		q.last[u], q.some = nil, q.some&^(1<<u)
	} else {
		last.behind = s.behind
	}
	s.behind = nil
	return s
}
