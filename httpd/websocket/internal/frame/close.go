package frame

import (
	"encoding/binary"
	"unicode/utf8"
)

// Codes of RFC 6455 7.4.1 that this module uses.
const (
	Normal    = 1000
	GoingAway = 1001
	Protocol  = 1002
	NoStatus  = 1005 // a close frame without a code; never sent
	Abnormal  = 1006 // no close frame has come; never sent
	NotUTF8   = 1007
	Policy    = 1008
	TooLarge  = 1009
	Internal  = 1011
)

// What ParseClose refuses.
const (
	ErrHalfCode Error = "a close frame of one byte"
	ErrCode     Error = "a close code that must not be sent"
	ErrText     Error = "a text that is not UTF-8"
)

// ValidCode reports whether a close frame may have this code: the codes of RFC 6455 7.4 and of its registry, and the
// codes that are free for libraries and programs.
func ValidCode(code int) bool {
	switch {
	case code >= 3000 && code <= 4999:
		return true
	case code < 1000 || code > 1014:
		return false
	}
	return code != 1004 && code != NoStatus && code != Abnormal
}

// ParseClose reads the payload of a close frame. Without one the code is NoStatus.
func ParseClose(p []byte) (code int, reason []byte, err error) {
	switch len(p) {
	case 0:
		return NoStatus, nil, nil
	case 1:
		return 0, nil, ErrHalfCode
	}
	code, reason = int(binary.BigEndian.Uint16(p)), p[2:]
	switch {
	case !ValidCode(code):
		return 0, nil, ErrCode
	case !utf8.Valid(reason):
		return 0, nil, ErrText
	}
	return code, reason, nil
}

// AppendClose appends the payload of a close frame. With NoStatus there is none. A reason that is too long for a control
// frame is cut between two characters.
func AppendClose(p []byte, code int, reason string) []byte {
	if code == NoStatus {
		return p
	}
	if most := MaxControl - 2; len(reason) > most {
		for !utf8.RuneStart(reason[most]) {
			most--
		}
		reason = reason[:most]
	}
	return append(binary.BigEndian.AppendUint16(p, uint16(code)), reason...)
}
