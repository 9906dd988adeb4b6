// Package http2 is the syntax of HTTP/2 for servers and clients (RFC 9113, 7541, 8441, 9218): frames, heads, windows, the
// states of a stream, and priorities. Bytes go in, and values or an [Error] come out. It knows no connection and no time:
// its caller finds the frames among the bytes, keeps the streams, and answers errors.
package http2

import "encoding/binary"

// Type is the type of a frame. Frames of other types are ignored (RFC 9113 4.1).
type Type uint8

// The types of RFC 9113 6 and RFC 9218 7.1.
const (
	Data           Type = 0x0
	Headers        Type = 0x1
	Priority       Type = 0x2
	RSTStream      Type = 0x3
	Settings       Type = 0x4
	PushPromise    Type = 0x5
	Ping           Type = 0x6
	GoAway         Type = 0x7
	WindowUpdate   Type = 0x8
	Continuation   Type = 0x9
	PriorityUpdate Type = 0x10
)

// Flags are the flags of a frame. What a bit means depends on the type.
type Flags uint8

// The flags of RFC 9113 6.
const (
	EndStream   Flags = 0x1  // of DATA and HEADERS
	Ack         Flags = 0x1  // of SETTINGS and PING
	EndHeaders  Flags = 0x4  // of HEADERS and CONTINUATION
	Padded      Flags = 0x8  // of DATA and HEADERS
	HasPriority Flags = 0x20 // of HEADERS
)

// Has reports whether all of these flags are set.
func (f Flags) Has(flags Flags) bool { return f&flags == flags }

const (
	// HeaderLen is the size of the header of a frame.
	HeaderLen = 9
	// MaxFrame is the size of the longest payload that is accepted and sent: the least that a peer may allow.
	MaxFrame = 16384
	// Preface is what a client begins a connection with, before its SETTINGS (RFC 9113 3.4).
	Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// Header is what precedes the payload of a frame.
type Header struct {
	Length uint32 // of the payload, in bytes
	Type   Type
	Flags  Flags
	Stream uint32 // 0: the connection
}

// ParseHeader reads the first HeaderLen bytes of p. The reserved bit is ignored (RFC 9113 4.1).
func ParseHeader(p []byte) Header {
	_ = p[HeaderLen-1]
	return Header{
		Length: uint32(p[0])<<16 | uint32(p[1])<<8 | uint32(p[2]),
		Type:   Type(p[3]),
		Flags:  Flags(p[4]),
		Stream: stream(p[5:]),
	}
}

// stream reads a number of 31 bits.
func stream(p []byte) uint32 { return binary.BigEndian.Uint32(p) &^ (1 << 31) }

// Append appends the header to to.
func (h Header) Append(to []byte) []byte {
	to = append(to, byte(h.Length>>16), byte(h.Length>>8), byte(h.Length), byte(h.Type), byte(h.Flags))
	return binary.BigEndian.AppendUint32(to, h.Stream)
}

var (
	errLong     = &Error{Code: FrameSizeError, Why: "a frame that is too long"}                                // 9113 4.2
	errSize     = &Error{Code: FrameSizeError, Why: "a frame of a size that its type does not have"}           // 9113 4.2
	errPriority = &Error{Code: FrameSizeError, Stream: its, Why: "a PRIORITY frame of another size than 5"}    // 9113 6.3
	errNoStream = &Error{Code: ProtocolError, Why: "a frame of a stream that names none"}                      // 9113 6.1 to 6.4
	errOnStream = &Error{Code: ProtocolError, Why: "a frame of a connection that names a stream"}              // 9113 6.5 to 6.8
	errEven     = &Error{Code: ProtocolError, Why: "a stream that only a server could have begun"}             // 9113 5.1.1, 8.4
	errPush     = &Error{Code: ProtocolError, Why: "PUSH_PROMISE, which nobody has allowed"}                   // 9113 6.6, 8.4
	errItself   = &Error{Code: ProtocolError, Stream: its, Why: "a stream that depends on itself"}             // 7540 5.3.1
	errNothing  = &Error{Code: ProtocolError, Stream: its, Why: "WINDOW_UPDATE of nothing"}                    // 9113 6.9
	errUpdated  = &Error{Code: ProtocolError, Why: "PRIORITY_UPDATE of a stream that a client does not begin"} // 9218 7.1
)

// The errors of connections that depend on more than a frame.
var (
	ErrFlow    = &Error{Code: FlowControlError, Why: "more DATA than the window of the connection has"} // 9113 6.9.1
	ErrOutflow = &Error{Code: FlowControlError, Why: "a window beyond 2^31-1"}                          // 9113 6.9.1
	ErrPadding = &Error{Code: ProtocolError, Why: "padding that is longer than its frame"}              // 9113 6.1, 6.2

	errSettings = &Error{Code: ProtocolError, Why: "the first frame is not SETTINGS"}              // 9113 3.4
	errCutBlock = &Error{Code: ProtocolError, Why: "a field block that another frame has cut"}     // 9113 6.10
	errNoBlock  = &Error{Code: ProtocolError, Why: "CONTINUATION without a field block before it"} // 9113 6.10
)

// rules are what a frame of each type may be like (9113 6).
var rules = [...]struct {
	place       place
	least, most uint32 // bytes of the payload
}{
	Data:           {onStream, 0, MaxFrame},
	Headers:        {onStream, 0, MaxFrame},
	Priority:       {onStream, 5, 5},
	RSTStream:      {onStream, 4, 4},
	Settings:       {onConnection, 0, MaxFrame},
	PushPromise:    {place: forbidden},
	Ping:           {onConnection, 8, 8},
	GoAway:         {onConnection, 8, MaxFrame},
	WindowUpdate:   {onEither, 4, 4},
	Continuation:   {onStream, 0, MaxFrame},
	PriorityUpdate: {onConnection, 4, MaxFrame},
}

// place is what a frame is about. The zero value is that of unknown types.
type place uint8

const (
	anywhere place = iota
	onConnection
	onStream
	onEither
	forbidden
)

// Expected is Check of a frame of a connection. first says that no SETTINGS have come, and block is the stream of a field block
// that is not complete, or 0: nothing but CONTINUATION may follow (RFC 9113 6.10).
func (h Header) Expected(first bool, block uint32) *Error {
	switch {
	case first && (h.Type != Settings || h.Flags.Has(Ack)):
		return errSettings
	case block != 0 && (h.Type != Continuation || h.Stream != block):
		return errCutBlock
	case block == 0 && h.Type == Continuation:
		return errNoBlock
	}
	return h.Check()
}

// Check finds everything that is wrong with a frame from a peer as its header alone tells, whatever came before it. There is no
// push, so no server begins a stream. A frame of an unknown type can only be too long. After an error of a stream, the payload
// of the frame is skipped.
func (h Header) Check() *Error {
	if h.Length > MaxFrame {
		return errLong
	}
	if int(h.Type) >= len(rules) {
		return nil
	}
	rule := &rules[h.Type]
	least := rule.least
	if h.padded() {
		least++
	}
	if h.weighed() {
		least += weight
	}
	switch {
	case rule.place == anywhere:
		return nil
	case rule.place == forbidden:
		return errPush
	case rule.place == onConnection && h.Stream != 0:
		return errOnStream
	case rule.place == onStream && h.Stream == 0:
		return errNoStream
	case h.Stream != 0 && h.Stream%2 == 0 && h.Type != Priority: // which has no meaning any more
		return errEven
	case h.Type == Settings && (h.Length%6 != 0 || h.Flags.Has(Ack) && h.Length > 0):
		return errSize
	case h.Length >= least && h.Length <= rule.most:
		return nil
	case h.Type == Priority:
		return errPriority.On(h.Stream)
	}
	return errSize
}

func (h Header) padded() bool  { return h.Type <= Headers && h.Flags.Has(Padded) }
func (h Header) weighed() bool { return h.Type == Headers && h.Flags.Has(HasPriority) }

// weight is the size of the priority that RFC 7540 had.
const weight = 5

// Payload returns what p, the whole payload of a frame that passed Check, has without padding and without the priority
// that HEADERS may begin with. An error of a stream comes with the payload all the same: a field block has to be decoded
// before the stream is reset, or else all later ones are misunderstood.
func Payload(h Header, p []byte) ([]byte, *Error) {
	padding, before := 0, 0
	if h.padded() {
		padding, p = int(p[0]), p[1:]
	}
	if h.weighed() {
		before = weight
	}
	if padding > len(p)-before {
		return nil, ErrPadding
	}
	if (before > 0 || h.Type == Priority && len(p) == weight) && stream(p) == h.Stream {
		return p[before : len(p)-padding], errItself.On(h.Stream)
	}
	return p[before : len(p)-padding], nil
}

// ReadWindowUpdate reads the payload of WINDOW_UPDATE (RFC 9113 6.9).
func ReadWindowUpdate(h Header, p []byte) (n uint32, err *Error) {
	if n = stream(p); n == 0 {
		return 0, errNothing.On(h.Stream)
	}
	return n, nil
}

// ReadRST reads the payload of RST_STREAM (RFC 9113 6.4).
func ReadRST(p []byte) Code { return Code(binary.BigEndian.Uint32(p)) }

// ReadGoAway reads the payload of GOAWAY: no stream above last was or will be looked at (RFC 9113 6.8).
func ReadGoAway(p []byte) (last uint32, code Code) {
	return stream(p), Code(binary.BigEndian.Uint32(p[4:]))
}

// ReadPriorityUpdate reads the payload of PRIORITY_UPDATE: a stream, which need not have begun, and its new priority
// (RFC 9218 7.1).
func ReadPriorityUpdate(p []byte) (id uint32, urgency uint8, err *Error) {
	if id = stream(p); id%2 == 0 {
		return 0, 0, errUpdated
	}
	return id, Urgency(p[4:], DefaultUrgency), nil
}

// AppendRST appends RST_STREAM.
func AppendRST(to []byte, stream uint32, code Code) []byte {
	to = Header{Length: 4, Type: RSTStream, Stream: stream}.Append(to)
	return binary.BigEndian.AppendUint32(to, uint32(code))
}

// AppendGoAway appends GOAWAY: no stream above last was or will be looked at. The text is for the log of a person, and
// cut off after 1 KiB.
func AppendGoAway(to []byte, last uint32, code Code, text string) []byte {
	text = text[:min(len(text), 1<<10)]
	to = Header{Length: 8 + uint32(len(text)), Type: GoAway}.Append(to)
	to = binary.BigEndian.AppendUint32(to, last)
	return append(binary.BigEndian.AppendUint32(to, uint32(code)), text...)
}

// AppendWindowUpdate appends WINDOW_UPDATE by n, which is not 0, of a stream or, with 0, of the connection.
func AppendWindowUpdate(to []byte, stream, n uint32) []byte {
	to = Header{Length: 4, Type: WindowUpdate, Stream: stream}.Append(to)
	return binary.BigEndian.AppendUint32(to, n)
}

// AppendPing appends PING, or the answer to one.
func AppendPing(to []byte, ack bool, data [8]byte) []byte {
	h := Header{Length: 8, Type: Ping}
	if ack {
		h.Flags = Ack
	}
	return append(h.Append(to), data[:]...)
}

// AppendHeaders appends a whole field block: HEADERS, and as many CONTINUATION as are needed. end says that nothing
// follows on the stream.
func AppendHeaders(to []byte, stream uint32, block []byte, end bool) []byte {
	h := Header{Type: Headers, Stream: stream}
	if end {
		h.Flags = EndStream
	}
	for {
		n := min(len(block), MaxFrame)
		if h.Length = uint32(n); n == len(block) {
			h.Flags |= EndHeaders
		}
		to = append(h.Append(to), block[:n]...)
		if block = block[n:]; len(block) == 0 {
			return to
		}
		h.Type, h.Flags = Continuation, 0
	}
}
