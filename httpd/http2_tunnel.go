package httpd

import (
	"io"
	"net"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// tunnel is a stream after an extended CONNECT (RFC 8441), as the transport of another protocol.
type tunnel struct {
	*stream
	conn  *listener.Conn // over it
	end   act.Waker      // of a task that waits for the end of the input
	rooms []forRoom
}

// forRoom is a task that waits until at most low bytes are queued.
type forRoom struct {
	w   act.Waker
	low int
}

var _ monitor.CloseNotifier = (*tunnel)(nil)

var errNoTunnel = &syntax.Refusal{Status: 501, Why: "CONNECT for a protocol that the handler does not have"} // 8441 5

// extended reports whether the request is an extended CONNECT.
func (s *stream) extended() bool { return s.head.Protocol.To > 0 }

// switchTo has the next action go on with the stream, whose head has been sent. The handler's action is closed after that, as over
// HTTP/1: it may have something for the next one.
func (s *stream) switchTo() {
	s.tunnel = &tunnel{stream: s}
	s.tunnel.conn = listener.NewConn(s.conn.cache.s, s.tunnel, s.conn.conn.Internals().Limits())
	next := s.out.next(s.tunnel.conn)
	_ = s.handler.Close() // there is no caller left to return its error to
	s.handler = act.Child{Action: next}
	s.report()
}

// ended reports whether nothing more comes, even if only the connection has ended.
func (x *tunnel) ended() bool { return x.hasAll() || x.stream.conn.eof }

// Lend implements monitor.Stream.
func (x *tunnel) Lend(most int) ([]byte, error) {
	switch {
	case x.lost != nil:
		return nil, x.lost
	case x.from < len(x.body):
		p := x.body[x.from:min(len(x.body), x.from+most)]
		x.discard(len(p))
		return p[:len(p):len(p)], nil
	case x.ended():
		return nil, io.EOF
	}
	return nil, monitor.ErrWouldBlock
}

// Receive implements monitor.Stream.
func (x *tunnel) Receive(p []byte) (int, error) {
	in, err := x.Lend(len(p))
	return copy(p, in), err
}

// Send implements monitor.Stream.
func (x *tunnel) Send(head, p []byte, high int) (int, error) {
	switch {
	case x.lost != nil:
		return 0, x.lost
	case x.closing:
		return 0, net.ErrClosed
	}
	x.queue = append(x.queue, head...)
	n := max(0, min(len(p), high-x.pending()))
	x.send(p[:n])
	return n, nil
}

// Queued implements monitor.Stream.
func (x *tunnel) Queued() (int, error) { return x.pending(), x.lost }

// AwaitInput implements monitor.Stream.
func (x *tunnel) AwaitInput(w act.Waker) {
	x.reader, x.end = w, act.Waker{}
	if x.lost != nil || x.ended() || x.from < len(x.body) {
		w.Wake()
	}
}

// AwaitEnd implements monitor.CloseNotifier.
func (x *tunnel) AwaitEnd(w act.Waker) (half bool, err error) {
	x.reader, x.end = act.Waker{}, w
	return x.ended(), x.lost
}

// AwaitOutput implements monitor.Stream.
func (x *tunnel) AwaitOutput(w act.Waker, low int) {
	x.rooms = append(slices.DeleteFunc(x.rooms, func(r forRoom) bool { return r.w.Stale() }), forRoom{w, low})
	x.sentSome()
}

// sentSome wakes tasks for which there is room.
func (x *tunnel) sentSome() {
	x.rooms = slices.DeleteFunc(x.rooms, func(r forRoom) bool {
		room := x.lost != nil || x.pending() <= r.low
		if room {
			r.w.Wake()
		}
		return room
	})
}

// Wake implements monitor.Stream.
func (x *tunnel) Wake() {
	x.reader.Wake()
	x.end.Wake()
	for _, r := range x.rooms {
		r.w.Wake()
	}
}

// Describe says what tasks wait for here. That of the stream says what its handler waits for, and so may call this one.
func (x *tunnel) Describe(d *act.Description) {
	x.describeClient(d)
	said := d.Internals()
	switch {
	case x.end.Armed():
		said.Waits.AddPeer(facts.EndOf, said.Peer)
	case x.reader.Armed():
		said.Waits.AddPeer("input from ", said.Peer)
	}
	if slices.ContainsFunc(x.rooms, func(r forRoom) bool { return r.w.Armed() }) {
		said.Waits.AddRoom(x.pending(), said.Peer)
	}
}

// CloseWrite implements monitor.Stream.
func (x *tunnel) CloseWrite() error {
	if x.lost == nil && !x.closing {
		x.closing = true
		x.stream.conn.schedule(x.stream)
	}
	return x.lost
}

// Close implements monitor.Stream. What the client still sends is thrown away like the rest of a body.
func (x *tunnel) Close(time.Duration) {
	_ = x.CloseWrite() // the client has reset the stream
	x.Wake()
}

// Abort implements monitor.Stream.
func (x *tunnel) Abort() { x.resetHere(http2.Cancel, net.ErrClosed) }

// LocalAddr implements monitor.Stream.
func (x *tunnel) LocalAddr() net.Addr { return x.stream.conn.conn.LocalAddr() }

// PeerAddr implements monitor.Stream.
func (x *tunnel) PeerAddr() net.Addr { return x.stream.conn.conn.RemoteAddr() }
