package http2

import "fmt"

// State is the state of a stream that a client began, as the server or the client sees it (RFC 9113 5.1). There is no push, so
// nothing is reserved, and no HEADERS of a server come in Idle: its client looks for that.
//
//	   HEADERS come or are sent   END_STREAM comes
//	Idle ─────────────▶ Open ─────────────────▶ HalfRemote
//	                     │                          │
//	                     │ END_STREAM is sent       │ END_STREAM is sent
//	                     ▼                          ▼
//	                  HalfLocal ───────────────▶ Closed ◀── RST_STREAM comes, or is sent in HalfRemote
//	                          END_STREAM comes      ▲
//	                                                │ END_STREAM comes
//	Open, HalfLocal ── RST_STREAM is sent ──▶ Reset ┘
type State uint8

// The states. In Reset, which is closed for RFC 9113, the peer may still be sending: that is discarded.
const (
	Idle State = iota
	Open
	HalfRemote // the peer has ended
	HalfLocal  // this side has ended
	Reset
	Closed
)

var (
	errIdle   = &Error{Code: ProtocolError, Why: "a frame of a stream that has not begun"} // 9113 5.1
	errEnded  = &Error{Code: StreamClosed, Stream: its, Why: "a frame after END_STREAM"}   // 9113 5.1
	errClosed = &Error{Code: StreamClosed, Why: "a frame of a stream that is closed"}      // 9113 5.1
)

// Receive returns the state after a frame of the stream has come, which passed Header.Check, or what is wrong with it.
// CONTINUATION belongs to its HEADERS: that no other frame comes between them is for the connection to see. An error does
// not change the state, and does not spare the caller from decoding a field block and from counting DATA in the window of
// the connection.
func (s State) Receive(h Header) (State, *Error) {
	ends := h.Flags.Has(EndStream)
	switch h.Type {
	case Headers, Data:
		switch {
		case s == Closed:
			return s, errClosed
		case s == HalfRemote:
			return s, errEnded.On(h.Stream)
		case s == Idle && h.Type == Data:
			return s, errIdle
		case s == Idle && !ends:
			return Open, nil
		case s == Idle || s == Open && ends:
			return HalfRemote, nil
		case ends: // in HalfLocal or Reset
			return Closed, nil
		}
	case RSTStream:
		if s == Idle {
			return s, errIdle
		}
		return Closed, nil
	case WindowUpdate:
		if s == Idle {
			return s, errIdle
		}
	}
	return s, nil
}

// Send returns the state after a frame of this type is sent. end says that it has END_STREAM. It panics if that may not be
// sent.
func (s State) Send(t Type, end bool) State {
	switch {
	case t == RSTStream && s == HalfRemote:
		return Closed
	case t == RSTStream && (s == Open || s == HalfLocal):
		return Reset
	case t == WindowUpdate && (s == Open || s == HalfRemote || s == HalfLocal):
		return s
	case t != Headers && t != Data || s != Open && s != HalfRemote:
		if t != Headers || s != Idle {
			panic(fmt.Sprintf("http2: a frame of type %d is sent in state %d", t, s))
		}
		if end {
			return HalfLocal
		}
		return Open
	case end && s == Open:
		return HalfLocal
	case end:
		return Closed
	}
	return s
}
