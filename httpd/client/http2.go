package client

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// http2Conn is a connection of HTTP/2 and its task (RFC 9113). It is a demon, since the tasks of the Calls are what keeps Run
// from returning.
//
//	Calls ──▶ out: HEADERS, DATA, WINDOW_UPDATE, RST_STREAM ──▶ transmit ──▶ connection
//	Calls ◀── streams: heads, content, trailers ◀── receive ◀── connection
//
// Calls add their frames to out in their own turns, in the order in which they are sent, and wake the connection. So content
// waits nowhere else: when out is full or a window is empty, Write says so.
//
//	        GOAWAY, shutdown, Close of the Origin        no stream is left
//	serving ────────────────────────────────────▶ leaving ────────────────▶ ending ──▶ lost
//	   ├──────── no stream for IdleTimeout, a mistake of the server, a flood ───▲       ▲
//	   └──────── the server is silent, or has gone ─────────────────────────────────────┘
//
// At rest it holds a timer, the table of its decoder, and no buffer.
type http2Conn struct {
	conn    *listener.Conn
	pool    *pool
	private bool // it is for one Call alone, such as the last one of an Origin that is closed
	decoder *http2.Decoder
	block   headerBlock
	streams []*stream // of Calls that have not ended, in the order of their numbers
	next    uint32    // the number of the next stream
	handed  uint32    // of the first one of which nothing was sent
	last    uint32    // the highest one that the server answers
	peer    http2.Peer
	inflow  http2.Inflow  // bytes of DATA of all streams that the server may send
	outflow http2.Outflow // likewise this side
	floods  http2.Floods
	late    int // frames without content that may come for streams that were reset here

	out     []byte
	writers []*stream // for whose content there was no room, the one that has waited longest first
	waker   act.Waker
	timer   timeout.Timer
	meter   listener.Meter

	phase   http2Phase
	known   bool // peer is what the server has announced
	failure error
	since   time.Duration // when it was made, and then since when there is no stream
	heard   time.Duration // when the latest bytes came
	pinged  time.Duration // since when a PING has no answer; else 0
	silence time.Duration // how long the server may be silent before the next PING
}

// headerBlock is a field block that is not complete.
type headerBlock struct {
	h    http2.Header // of HEADERS. Its Stream is 0 if there is no block
	to   *stream      // nil: it is decoded and thrown away
	head *http2.Head
}

type http2Phase uint8

const (
	serving http2Phase = iota
	leaving            // there are no new requests
	ending             // GOAWAY is sent, and nothing is read
	lost
)

// The bounds of a connection, and the times that no setting has.
const (
	unknownStreams = 100 // that a server allows, until one of its connections has said so (RFC 9113 6.5.2)
	connWindow     = 1 << 20
	widestWindow   = 1 << 20  // of a stream whose Call reads everything. At first it is http2.DefaultWindow
	fullOut        = 64 << 10 // bytes in out: no DATA is added. With twice as many no frame is read
	framesATurn    = 128      // that are read
	dataATurn      = 64 << 10 // bytes of them
	mostID         = 1<<31 - 1
	silentTime     = 75 * time.Second // that is doubled with each PING, since gRPC counts them
	answerTime     = 15 * time.Second // for the answer to PING, and for the first SETTINGS
)

var (
	errGone   = errors.New("the server has ended the connection, and not looked at the request")
	errSilent = timeoutError("the server is silent")
)

func newHTTP2(p *pool, conn *listener.Conn, private bool) *http2Conn {
	now := p.s.Now()
	x := &http2Conn{conn: conn, pool: p, private: private, next: 1, handed: 1, last: mostID, peer: http2.Unknown,
		since: now, heard: now, silence: silentTime}
	x.decoder = http2.NewDecoder(&p.desk.scratch)
	x.decoder.Response = true
	x.inflow = http2.NewInflow(connWindow)
	x.outflow.Add(http2.DefaultWindow)
	x.out = http2.AppendSettings(append(x.buffer(), http2.Preface...), http2.Setting{ID: http2.EnablePush},
		http2.Setting{ID: http2.NoPriorities, Value: 1})
	x.out = http2.AppendWindowUpdate(x.out, 0, connWindow-http2.DefaultWindow)
	if !private {
		p.shared = append(p.shared, x)
	}
	p.s.Attach(x)
	return x
}

// buffer returns out, which has memory from now on, and has it sent soon.
func (x *http2Conn) buffer() []byte {
	if x.waker.Wake(); x.out == nil {
		if x.out = x.pool.frames.Get(); x.out == nil {
			x.out = make([]byte, 0, 4<<10)
		}
	}
	return x.out
}

// room reports whether a further request may be sent.
func (x *http2Conn) room() bool {
	bound := min(uint32(most(x.pool.o.MaxStreams, standardStreams, mostID)), x.peer.Streams)
	if !x.known {
		bound = min(bound, cmp.Or(x.pool.streams, unknownStreams))
	}
	return x.phase == serving && x.pinged == 0 && uint32(len(x.streams)) < bound && x.next <= mostID
}

// Act reads frames, and sends what they and the Calls have led to.
func (x *http2Conn) Act(t *act.Task) act.Directive {
	x.waker = act.Waker{} // what happens in this turn needs no other one
	now := t.Scheduler().Now()
	more := x.receive(t, now)
	next := x.watch(now)
	more = x.transmit(t) || more
	x.meter.Set(x.conn, cap(x.out)+x.decoder.Held())
	switch {
	case x.phase == ending:
		x.lose(x.failure)
		return act.Done
	case x.phase == lost:
		return act.Done
	case more:
		return act.Yield
	}
	x.timer.WakeAt(t, next)
	x.waker = t.Waker()
	return act.Wait
}

// receive reads what has come, and reports whether there may be more.
func (x *http2Conn) receive(t *act.Task, now time.Duration) (more bool) {
	for n, taken := 0, 0; x.phase < ending && len(x.out) < 2*fullOut; n++ {
		if n == framesATurn || taken >= dataATurn {
			return true
		}
		size, err := x.read()
		if blocked, is := err.(act.Blocked); is {
			if n := x.inflow.Give(); n > 0 {
				x.out = http2.AppendWindowUpdate(x.buffer(), 0, n)
			}
			blocked.Arm(t)
			return false
		}
		taken += size
		if x.heard = now; x.pinged != 0 {
			x.pinged = 0
			x.pool.wakeFirst()
		}
		switch bad := (*http2.Error)(nil); {
		case err == nil:
		case errors.As(err, &bad):
			x.fault(bad)
		case err == io.EOF:
			x.lose(errEnd)
		default:
			x.lose(err)
		}
	}
	return false
}

// watch ends what has taken too long, and returns when it is to be called again.
func (x *http2Conn) watch(now time.Duration) (next time.Duration) {
	idle := len(x.streams) == 0
	if next = x.heard + x.silence; idle {
		next = x.since + timeout.Or(x.pool.o.IdleTimeout, standardKeep)
	}
	if !x.known {
		next = min(next, x.since+answerTime)
	}
	if x.pinged != 0 {
		next = min(next, x.pinged+answerTime)
	}
	switch {
	case x.phase >= ending:
	case idle && x.phase == leaving:
		x.end(&http2.Error{Code: http2.NoError})
	case now < next:
	case !x.known || x.pinged != 0:
		x.lose(errSilent)
	case idle:
		x.end(&http2.Error{Code: http2.NoError})
	default:
		x.ping(now)
		x.silence *= 2
		return x.watch(now)
	}
	return next
}

// ping asks whether the server is there. Until it answers there are no new requests.
func (x *http2Conn) ping(now time.Duration) {
	x.pinged = max(1, now)
	x.out = http2.AppendPing(x.buffer(), false, [8]byte{})
}

// transmit sends what there is to send, as far as the server takes it, and reports whether there is more to do at once.
func (x *http2Conn) transmit(t *act.Task) (more bool) {
	if len(x.out) == 0 || x.phase == lost {
		return false
	}
	held := len(x.out) >= 2*fullOut // so that nothing was read
	n, err := x.conn.Write(x.out)
	if n > 0 {
		x.handed = x.next
	}
	if x.out = append(x.out[:0], x.out[n:]...); len(x.out) == 0 {
		x.pool.frames.Put(x.out)
		x.out = nil
	}
	x.feed()
	switch blocked, is := err.(act.Blocked); {
	case is:
		blocked.Arm(t)
	case err != nil:
		x.lose(err)
	}
	return held && len(x.out) < 2*fullOut
}

// feed wakes the Calls for whose content there may be room now.
func (x *http2Conn) feed() {
	if len(x.out) < fullOut && x.outflow.Room() > 0 {
		for _, s := range x.writers {
			s.waker.Wake()
		}
	}
}

// retire has the connection end when the last of its Calls has.
func (x *http2Conn) retire() {
	x.phase = max(x.phase, leaving)
	x.pool.shared = slices.DeleteFunc(x.pool.shared, func(other *http2Conn) bool { return other == x })
	x.waker.Wake()
}

// end tells the server why the connection ends.
func (x *http2Conn) end(why *http2.Error) {
	for _, s := range x.streams {
		s.fail(why)
	}
	x.phase, x.failure = ending, why
	x.out = http2.AppendGoAway(x.buffer(), 0, why.Code, why.Why)
}

// lose ends the connection. Calls of which nothing was sent may begin anew.
func (x *http2Conn) lose(err error) {
	switch x.phase {
	case lost:
		return
	case ending:
		_ = x.conn.Internals().CloseWithin(0) // an error means that the server has gone
	default:
		x.conn.Abort()
	}
	x.retire()
	x.phase = lost
	x.timer.Stop()
	for _, s := range x.streams {
		if s.id >= x.handed {
			s.fail(notDone{err})
		}
		s.fail(err)
	}
	x.pool.free()
}

// remove takes a stream out whose Call has ended.
func (x *http2Conn) remove(s *stream) {
	same := func(other *stream) bool { return other == s }
	x.streams = slices.DeleteFunc(x.streams, same)
	x.writers = slices.DeleteFunc(x.writers, same)
	if x.block.to == s {
		x.block.to = nil
	}
	if len(x.streams) == 0 {
		x.since = x.pool.s.Now()
		if x.private {
			x.retire()
		}
		x.waker.Wake()
		x.pool.share()
	}
	x.pool.wakeFirst()
}

// idle reports whether it serves, and has no Call.
func (x *http2Conn) idle() bool { return x.phase == serving && len(x.streams) == 0 }

// find returns the stream with this number, or nil.
func (x *http2Conn) find(id uint32) *stream {
	i, ok := slices.BinarySearchFunc(x.streams, id, func(s *stream, id uint32) int { return int(s.id) - int(id) })
	if !ok {
		return nil
	}
	return x.streams[i]
}

// Stop implements act.Stopper: Calls go on during a shutdown, and the connection ends after the last one.
func (x *http2Conn) Stop(*act.Task, shutdown.Order) { x.retire() }

// Close is called when the scheduler is closed.
func (x *http2Conn) Close() error {
	if x.phase == ending { // there is no time for GOAWAY
		x.phase = leaving
	}
	x.lose(act.ErrDropped)
	return nil
}

// Describe implements act.Describer.
func (x *http2Conn) Describe(d *act.Description) {
	d.Name = "client: HTTP/2 to " + x.pool.o.Address
	d.WaitsFor("answers to its requests: " + strconv.Itoa(len(x.streams)))
}
