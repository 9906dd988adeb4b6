package http2

import (
	"encoding/binary"
	"math"
)

// Setting is a parameter that a server or client announces (RFC 9113 6.5.2).
type Setting struct {
	ID    SettingID
	Value uint32
}

// SettingID names a Setting. Unknown ones are ignored.
type SettingID uint16

// The settings of RFC 9113 6.5.2, RFC 8441 3 and RFC 9218 2.1.
const (
	HeaderTableSize      SettingID = 0x1
	EnablePush           SettingID = 0x2
	MaxConcurrentStreams SettingID = 0x3
	InitialWindowSize    SettingID = 0x4
	MaxFrameSize         SettingID = 0x5
	MaxHeaderListSize    SettingID = 0x6
	EnableConnect        SettingID = 0x8
	NoPriorities         SettingID = 0x9 // of RFC 7540
)

const (
	// DefaultWindow is the size of the window of each stream and of the connection at first (RFC 9113 6.9.2).
	DefaultWindow = 65535
	// MaxWindow is the largest size of a window (RFC 9113 6.9.1).
	MaxWindow = math.MaxInt32
)

var (
	errTakenBack = &Error{Code: ProtocolError, Why: "SETTINGS_ENABLE_CONNECT_PROTOCOL that is taken back"} // 8441 3
	errSwitch    = &Error{Code: ProtocolError, Why: "a setting that is neither 0 nor 1"}                   // 9113 6.5.2; 8441 3
	errWindow    = &Error{Code: FlowControlError, Why: "SETTINGS_INITIAL_WINDOW_SIZE of 2^31 or more"}     // 9113 6.5.2
	errMaximum   = &Error{Code: ProtocolError, Why: "a SETTINGS_MAX_FRAME_SIZE that is not allowed"}       // 9113 6.5.2
)

// Peer is what a peer has announced, as far as it is of use: no frame that is sent is longer than MaxFrame, and no field is put
// in a table.
type Peer struct {
	Window  uint32 // of each stream at first, for what is sent to the peer
	Streams uint32 // that the peer allows
	Connect bool   // a server allows extended CONNECT (RFC 8441)
	Push    bool   // a client allows push; a server may not say so
}

// Unknown is a Peer that has not announced anything.
var Unknown = Peer{Window: DefaultWindow, Streams: math.MaxUint32}

// ReadSettings reads the payload of a SETTINGS frame that passed Check, in order (RFC 9113 6.5.3). before is what the peer has
// announced until now.
func ReadSettings(p []byte, before Peer) (after Peer, err *Error) {
	after = before
	for ; len(p) >= 6; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch id := SettingID(binary.BigEndian.Uint16(p)); id {
		case EnablePush, EnableConnect, NoPriorities:
			switch {
			case value > 1:
				return before, errSwitch
			case id == EnablePush:
				after.Push = value == 1
			case id == EnableConnect && before.Connect && value == 0:
				return before, errTakenBack
			case id == EnableConnect:
				after.Connect = value == 1
			}
		case MaxConcurrentStreams:
			after.Streams = value
		case InitialWindowSize:
			if value > MaxWindow {
				return before, errWindow
			}
			after.Window = value
		case MaxFrameSize:
			if value < MaxFrame || value >= 1<<24 {
				return before, errMaximum
			}
		}
	}
	return after, nil
}

// AppendSettings appends a SETTINGS frame.
func AppendSettings(to []byte, settings ...Setting) []byte {
	to = Header{Length: 6 * uint32(len(settings)), Type: Settings}.Append(to)
	for _, s := range settings {
		to = binary.BigEndian.AppendUint16(to, uint16(s.ID))
		to = binary.BigEndian.AppendUint32(to, s.Value)
	}
	return to
}

// AppendSettingsAck appends the answer to a SETTINGS frame.
func AppendSettingsAck(to []byte) []byte { return Header{Type: Settings, Flags: Ack}.Append(to) }
