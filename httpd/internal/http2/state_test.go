package http2

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// past is what has happened on a stream, which is all that RFC 9113 5.1 needs.
type past struct{ begun, gotEnd, gotReset, sentEnd, sentReset bool }

func (p past) closed() bool { return p.gotReset || p.sentReset || p.gotEnd && p.sentEnd }

// unaware reports whether the peer may not have seen yet that the stream was reset.
func (p past) unaware() bool { return p.sentReset && !p.gotEnd && !p.gotReset }

func (p past) state() State {
	switch {
	case !p.begun:
		return Idle
	case p.unaware():
		return Reset
	case p.closed():
		return Closed
	case p.gotEnd:
		return HalfRemote
	case p.sentEnd:
		return HalfLocal
	}
	return Open
}

// refuses returns what section 5.1 says to a frame of the peer on stream 1.
func (p past) refuses(t Type) *Error {
	content := t == Headers || t == Data
	switch {
	case t == Priority || t == Continuation: // "PRIORITY can be sent and received in any stream state"
	case !p.begun && t != Headers: // "any frame other than HEADERS or PRIORITY"
		return &Error{ProtocolError, 0, errIdle.Why}
	case p.closed() && content && !p.unaware(): // "MAY treat [it] as a connection error of type STREAM_CLOSED"
		return &Error{StreamClosed, 0, errClosed.Why}
	case p.gotEnd && content && !p.closed(): // "MUST respond with a stream error of type STREAM_CLOSED"
		return &Error{StreamClosed, 1, errEnded.Why}
	}
	return nil
}

// may reports whether a frame may be sent. HEADERS of the client begin the stream.
func (p past) may(t Type) bool {
	switch t {
	case Headers, Data:
		return (p.begun || t == Headers) && !p.closed() && !p.sentEnd
	case RSTStream, WindowUpdate:
		return p.begun && !p.closed()
	}
	return false
}

// All sequences of four frames, in both directions.
func TestStates(t *testing.T) {
	kinds := []struct {
		typ Type
		end Flags
	}{{Headers, 0}, {Headers, EndStream}, {Data, 0}, {Data, EndStream}, {RSTStream, 0}, {RSTStream, EndStream}, {WindowUpdate, 0},
		{Priority, 0}, {Continuation, 0}}
	seen := map[State]int{}
	var from func(State, past, int)
	from = func(s State, p past, left int) {
		if seen[s]++; s != p.state() {
			require.Equal(t, p.state(), s, "%+v", p)
		}
		if left == 0 {
			return
		}
		for _, k := range kinds {
			content := k.typ == Headers || k.typ == Data
			next, err := s.Receive(Header{Type: k.typ, Flags: k.end, Stream: 1})
			if want := p.refuses(k.typ); want != nil || err != nil {
				require.Equal(t, want, err, "%v %+v", k, p)
				require.Equal(t, s, next)
			} else {
				q := p
				q.begun = p.begun || k.typ == Headers
				q.gotEnd = p.gotEnd || content && k.end != 0
				q.gotReset = p.gotReset || k.typ == RSTStream
				from(next, q, left-1)
			}
			if !p.may(k.typ) {
				require.Panics(t, func() { s.Send(k.typ, k.end != 0) }, "%v %+v", k, p)
			} else {
				q := p
				q.begun = true
				q.sentEnd = p.sentEnd || content && k.end != 0
				q.sentReset = p.sentReset || k.typ == RSTStream
				from(s.Send(k.typ, k.end != 0), q, left-1)
			}
		}
	}
	from(Idle, past{}, 4)
	require.Len(t, seen, 6)
}

func TestAFrameThatMayNotBeSent(t *testing.T) {
	require.PanicsWithValue(t, "http2: a frame of type 0 is sent in state 3", func() { HalfLocal.Send(Data, false) })
}
