package frame

import "encoding/binary"

// UTF8 checks a text that comes in pieces. The zero UTF8 is the beginning of a text.
type UTF8 struct {
	left     uint8 // bytes that the present character still needs
	low, top uint8 // what the next one of them may be
}

// Over reports whether no character has been begun and not ended.
func (u *UTF8) Over() bool { return u.left == 0 }

// Write reports whether the text, followed by p, is UTF-8 or can become it. After false u is of no further use.
func (u *UTF8) Write(p []byte) bool {
	for {
		for u.left == 0 && len(p) >= 8 && binary.LittleEndian.Uint64(p)&0x8080808080808080 == 0 {
			p = p[8:]
		}
		// Up to 8 bytes one by one: then it may be ASCII again.
		for _, b := range p[:min(len(p), 8)] {
			switch {
			case u.left > 0 && (b < u.low || b > u.top):
				return false
			case u.left > 0:
				u.left, u.low, u.top = u.left-1, 0x80, 0xBF
			case b < 0x80:
			case !u.begin(b):
				return false
			}
		}
		if len(p) <= 8 {
			return true
		}
		p = p[8:]
	}
}

// begin begins a character of several bytes (RFC 3629 4).
func (u *UTF8) begin(b byte) bool {
	u.low, u.top = 0x80, 0xBF
	switch {
	case b < 0xC2: // a byte that only continues, or a character in more bytes than it needs
		return false
	case b < 0xE0:
		u.left = 1
	case b < 0xF0:
		u.left = 2
		switch b {
		case 0xE0:
			u.low = 0xA0 // else two bytes were enough
		case 0xED:
			u.top = 0x9F // else it is half of a surrogate pair
		}
	case b < 0xF5:
		u.left = 3
		switch b {
		case 0xF0:
			u.low = 0x90 // else three bytes were enough
		case 0xF4:
			u.top = 0x8F // else it is beyond U+10FFFF
		}
	default:
		return false
	}
	return true
}
