package http2

import "fmt"

// Code is why a stream or a connection ends (RFC 9113 7). Unknown ones have no special meaning.
type Code uint32

// The codes of RFC 9113 7.
const (
	NoError Code = iota
	ProtocolError
	InternalError
	FlowControlError
	SettingsTimeout
	StreamClosed
	FrameSizeError
	RefusedStream
	Cancel
	CompressionError
	ConnectError
	EnhanceYourCalm
	InadequateSecurity
	HTTP11Required
)

var codes = [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
	"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
	"ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}

// String returns the name that the code has in RFC 9113.
func (c Code) String() string {
	if int64(c) < int64(len(codes)) {
		return codes[c]
	}
	return fmt.Sprintf("code %#x", uint32(c))
}

// Error is a breach of the protocol by a peer: of a stream, which is reset, or of the connection, which ends. Variables
// of this type are shared, so nobody changes one.
type Error struct {
	Code   Code
	Stream uint32 // 0: the connection
	Why    string // for the log, and for the peer in GOAWAY
}

// its is the Stream of an error of a stream that is not known here: see On. No stream has this number.
const its = 1 << 31

// Error returns Code and Why.
func (e *Error) Error() string { return "http2: " + e.Code.String() + ": " + e.Why }

// On returns the error for a stream, if it is that of a stream, and otherwise itself. With 0 it becomes one of the connection.
func (e *Error) On(stream uint32) *Error {
	if e == nil || e.Stream == 0 {
		return e
	}
	return &Error{Code: e.Code, Stream: stream, Why: e.Why}
}
