package httpd

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/listener"
)

// http2Conn is the action of a connection of HTTP/2 (RFC 9113). Its turn has two halves:
//
//	connection ──▶ receive: frames ──▶ streams, with their bodies and windows ──▶ handlers
//	connection ◀── transmit: out ◀──── control frames, heads, and DATA of the ready streams, one after the other
//
// A handler that answers at once is called in the first half, and its answer leaves in the second, together with the answers to
// other requests. The action of any other handler is a task of its own, the [stream], so it may wait, offload, fail and
// compute without the other streams. Its turns change the stream, put it among the ready ones and wake the connection.
//
//	         SETTINGS           shutdown           the client knows        no stream is left
//	opening ──────────▶ serving ─────────▶ warning ────────────────▶ gone ───────────────────▶ ending
//	   │                  │ a mistake of the client, a flood, silence                           ▲
//	   └──────────────────┴─────────────────────────────────────────────────────────────────────┘
//
// At rest it holds a timer, the table of its decoder, and no buffer.
type http2Conn struct {
	link
	names   ofStream // the client and the service, for the tasks of streams
	cache   *cache
	waker   act.Waker // of the connection's task, for the streams
	decoder *http2.Decoder
	streams []*stream     // that are not over, in the order of their numbers
	last    uint32        // the highest number of a request
	inflow  http2.Inflow  // bytes of DATA of all streams that the client may send
	outflow http2.Outflow // likewise the server
	initial uint32        // window of a new stream, for what the server sends
	data    incoming
	taken   int // in this turn, of dataATurn
	block   headerBlock
	closed  closedStreams
	earlies [4]earlyUpdate

	out     []byte // frames on their way
	ready   queues
	starved []*stream // that would be ready if the connection had a window

	phase     http2Phase
	begins    bool          // no field block was sent yet
	eof       bool          // the client has closed its side
	choked    bool          // nothing was read, since out was full
	unwatched bool          // a time has begun, or the last stream has ended, since watch was called
	failure   error         // why it is lost
	since     time.Duration // when warning began
	begun     time.Duration // since when a frame or a header block is incomplete, or SETTINGS are missing; else 0
	idle      time.Duration // since when there is no stream; 0 if there is one
	heard     time.Duration // when the latest bytes came
	pinged    time.Duration // since when a PING has no answer; else 0
	leave     time.Duration // when a shutdown ends the connection; 0 if none does
	floods    http2.Floods
	held      int // bytes of memory that an unfinished head takes, of cache.heads
	meter     listener.Meter
}

type http2Phase uint8

const (
	opening http2Phase = iota // the preface has come, and not yet SETTINGS
	serving
	warning // GOAWAY is announced: requests that are on their way are answered
	gone    // GOAWAY has said which requests are answered: there are no further ones
	ending  // the rest of out is sent, and nothing is read
	lost    // the client cannot be told anything
)

// The bounds of a connection. Without Server.MaxStreams it has mostStreams.
const (
	mostStreams  = 128
	connWindow   = 1 << 20  // bytes of DATA on their way to all streams
	widestWindow = 1 << 20  // to a stream whose handler reads everything. At first it is http2.DefaultWindow
	fullOut      = 64 << 10 // bytes in out: no DATA is added, and no frame is read
	framesATurn  = 128      // that are read
	dataATurn    = 64 << 10 // bytes of DATA and of fields that are read
	enoughATurn  = 56 << 10 // of these, if nothing that was received is left: most of a further receive would have to be kept
	blockByte    = 4        // of these for a byte of a field block, which may stand for a field that is not looked at
	fillsATurn   = 4        // of out
)

// incoming is the rest of a DATA frame, of which a part has come.
type incoming struct {
	h       http2.Header
	to      *stream // nil: it is thrown away
	left    int     // bytes of content
	padding int     // bytes after them
}

// headerBlock is a field block that is not complete. Nothing but CONTINUATION may come (RFC 9113 6.10).
type headerBlock struct {
	h    http2.Header // of HEADERS. Its Stream is 0 if there is no block
	to   *stream      // nil: it is decoded and thrown away
	tail *http2.Head  // the trailers of a request; nil: it is a head
	bad  *http2.Error // what is wrong beside the block itself
}

func newHTTP2(t *act.Task, l link) *http2Conn {
	l.timer = timeout.Timer{}
	of, is := t.Action().(served)
	if !is {
		of = unserved{}
	}
	x := &http2Conn{link: l, names: ofStream{of}, cache: caches.Get(l.conn.Scheduler())}
	x.decoder = http2.NewDecoder(&x.cache.scratch)
	x.inflow = http2.NewInflow(connWindow)
	x.outflow.Add(http2.DefaultWindow)
	x.initial, x.begins = http2.DefaultWindow, true
	x.cache.counts.http2++
	x.heard = max(1, x.cache.s.Now())
	x.idle, x.begun = x.heard, x.heard
	x.enter(StateActive)
	x.enter(StateIdle)
	x.out = http2.AppendSettings(x.buffer(),
		http2.Setting{ID: http2.MaxConcurrentStreams, Value: uint32(x.mostStreams())},
		http2.Setting{ID: http2.MaxHeaderListSize, Value: uint32(cmp.Or(x.server.MaxHead, 64<<10))},
		http2.Setting{ID: http2.EnableConnect, Value: 1},
		http2.Setting{ID: http2.NoPriorities, Value: 1})
	x.out = http2.AppendWindowUpdate(x.out, 0, connWindow-http2.DefaultWindow)
	return x
}

// full reports whether there is no place for a further request. Requests that were reset, whose handlers have not returned, have
// as many places again: a browser takes all of its requests back and asks for as many others, in one go.
func (x *http2Conn) full() bool {
	n, most := len(x.streams), x.mostStreams()
	if n >= most && n < 2*most {
		for _, s := range x.streams {
			if s.lost != nil {
				n--
			}
		}
	}
	return n >= most
}

func (x *http2Conn) mostStreams() int {
	if n := x.server.MaxStreams; n > 0 {
		return n
	}
	return mostStreams
}

// Act reads frames, and sends what they and the streams have led to.
func (x *http2Conn) Act(t *act.Task) act.Directive {
	x.waker = act.Waker{} // what happens in this turn needs no other one
	more := x.receive(t)
	for x.watch(t) {
	}
	x.unwatched = false
	unsent := x.transmit(t)
	if race.Enabled {
		if err := x.Check(); err != nil {
			panic(err)
		}
	}
	x.meter.Set(x.conn, cap(x.out)+x.decoder.Held())
	if more || unsent || x.unwatched || x.choked && len(x.out) < fullOut {
		return act.Yield
	}
	switch {
	case x.phase == lost:
		x.conn.Abort()
		if x.enter(StateClosed); errors.Is(x.failure, ErrSlow) {
			return act.Done
		}
		return t.Fail(x.failure)
	case x.phase == ending && len(x.out) == 0:
		return x.finish(t)
	}
	x.waker = t.Waker()
	return act.Wait
}

// receive reads what has come, and reports whether there may be more.
func (x *http2Conn) receive(t *act.Task) (more bool) {
	x.taken, x.choked = 0, false
	for n := 0; x.phase < ending && !x.eof; n++ {
		if x.choked = len(x.out) >= fullOut; x.choked { // a client that does not read gets no more to read
			return false
		}
		if n == framesATurn || x.taken >= dataATurn || x.taken >= enoughATurn && x.conn.Buffered() == 0 {
			return true
		}
		err := x.next(t)
		if blocked, is := err.(act.Blocked); is {
			x.credit()
			blocked.Arm(t)
			return false
		}
		x.heard, x.pinged = t.Scheduler().Now(), 0
		switch bad := (*http2.Error)(nil); {
		case err == nil:
		case errors.As(err, &bad):
			x.fault(t, bad)
		case err == io.EOF:
			x.halfClosed()
		default:
			x.lose(err)
		}
	}
	if x.eof && x.phase < ending {
		if _, err := x.conn.Ended(t); err != nil {
			x.lose(err)
		}
	}
	return false
}

// next reads a frame, or a further part of DATA.
func (x *http2Conn) next(t *act.Task) error {
	if x.data.left+x.data.padding > 0 {
		return x.more()
	}
	in, err := x.conn.Peek(http2.HeaderLen)
	if err != nil {
		return err
	}
	h := http2.ParseHeader(in)
	bad := h.Expected(x.phase == opening, x.block.h.Stream)
	if bad != nil && bad.Stream == 0 {
		return bad
	}
	n := http2.HeaderLen + int(h.Length)
	switch {
	case h.Type == http2.Data && h.Flags.Has(http2.Padded):
		n = http2.HeaderLen + 1
	case h.Type == http2.Data:
		n = http2.HeaderLen
	}
	if in, err = x.conn.Peek(n); err != nil {
		return err
	}
	if x.block.h.Stream == 0 { // the time of a block goes on, however many frames it has
		x.begun = 0
	}
	x.conn.Discard(n) // the bytes are lent until the turn ends
	switch {
	case bad != nil:
		return bad
	case h.Type == http2.Data:
		return x.beginData(h, in[http2.HeaderLen:n])
	}
	p, bad := http2.Payload(h, in[http2.HeaderLen:n])
	if bad != nil && bad.Stream == 0 {
		return bad
	}
	switch h.Type {
	case http2.Headers:
		return x.headers(t, h, p, bad)
	case http2.Continuation:
		return x.fragment(t, h, p)
	}
	if err := x.frame(h, p); err != nil || bad == nil {
		return err
	}
	return bad
}

// frame does what a frame says that has no content and no fields.
func (x *http2Conn) frame(h http2.Header, p []byte) error {
	switch h.Type {
	case http2.RSTStream:
		return x.resetBy(h, p)
	case http2.Settings:
		return x.settings(h, p)
	case http2.Ping:
		return x.ping(h, p)
	case http2.WindowUpdate:
		return x.window(h, p)
	case http2.PriorityUpdate:
		return x.reprioritize(p)
	}
	return x.flood(http2.OfOthers) // PRIORITY, GOAWAY, which a client need not send, and types that are not known
}

// limits bound a head.
func (x *http2Conn) limits() http2.Limits {
	return http2.Limits{Head: x.server.MaxHead, Fields: x.server.MaxFields}
}

// remove takes a stream out that is over.
func (x *http2Conn) remove(s *stream) {
	if i, ok := x.place(s.id); ok {
		x.streams = slices.Delete(x.streams, i, i+1)
	}
	if len(x.streams) == 0 && x.phase < ending {
		x.idle = max(1, x.cache.s.Now())
		x.enter(StateIdle)
		x.unwatched = true
		x.waker.Wake()
	}
}

// find returns the stream with this number, or nil.
func (x *http2Conn) find(id uint32) *stream {
	i, ok := x.place(id)
	if !ok {
		return nil
	}
	return x.streams[i]
}

// of returns the stream with this number, or nil, and its state.
func (x *http2Conn) of(id uint32) (*stream, http2.State) {
	s := x.find(id)
	switch {
	case s != nil:
		return s, s.state
	case id > x.last && x.phase < gone:
		return nil, http2.Idle
	case id > x.last, x.closed.has(id): // it is not answered
		return nil, http2.Reset
	}
	return nil, http2.Closed
}

func (x *http2Conn) place(id uint32) (i int, ok bool) {
	return slices.BinarySearchFunc(x.streams, id, func(s *stream, id uint32) int { return int(s.id) - int(id) })
}

// closedStreams are the numbers of streams that the server has reset. Their clients may not know it yet.
type closedStreams struct {
	ids  []uint32
	next int
}

func (c *closedStreams) add(id uint32, most int) {
	if len(c.ids) < most {
		c.ids = append(c.ids, id)
		return
	}
	c.ids[c.next] = id
	c.next = (c.next + 1) % len(c.ids)
}

func (c *closedStreams) has(id uint32) bool { return slices.Contains(c.ids, id) }

// earlyUpdate is a PRIORITY_UPDATE for a request that has not come.
type earlyUpdate struct {
	id      uint32
	urgency uint8
}

// early returns the place for that of a stream. Requests that follow each other have different places.
func (x *http2Conn) early(id uint32) *earlyUpdate { return &x.earlies[id/2%uint32(len(x.earlies))] }
