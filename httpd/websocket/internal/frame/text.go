package frame

import "unicode/utf8"

// UTF8 checks a text that comes in pieces. The zero UTF8 is the beginning of a text.
type UTF8 struct {
	begun [utf8.UTFMax]byte // of the present character
	n     uint8             // how many bytes
}

// Over reports whether no character has been begun and not ended.
func (u *UTF8) Over() bool { return u.n == 0 }

// Write reports whether the text, followed by p, is UTF-8 or can become it. After false u is of no further use.
func (u *UTF8) Write(p []byte) bool {
	for ; u.n > 0 && len(p) > 0; p = p[1:] {
		u.begun[u.n] = p[0]
		if u.n++; utf8.FullRune(u.begun[:u.n]) {
			if !utf8.Valid(u.begun[:u.n]) {
				return false
			}
			u.n = 0
		}
	}
	whole := len(p)
	for i := max(0, len(p)-utf8.UTFMax+1); i < len(p); i++ {
		if utf8.RuneStart(p[i]) && !utf8.FullRune(p[i:]) {
			whole = i
			break
		}
	}
	u.n += uint8(copy(u.begun[u.n:], p[whole:]))
	return utf8.Valid(p[:whole])
}
