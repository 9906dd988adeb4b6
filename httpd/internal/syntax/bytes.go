// Package syntax is what all versions of HTTP share: sets of bytes, fields as positions in a buffer, hosts, escapes and
// status codes (RFC 9110, RFC 3986). It knows no connection and allocates nothing.
package syntax

import "math/bits"

// Set is a set of bytes.
type Set [256]bool

// The sets that the grammars of HTTP use.
var (
	Token     = setOf("!#$%&'*+-.^_`|~" + alphanumeric) // RFC 9110 5.6.2
	Target    = not(setOf(controls + "\t \"<>#"))       // RFC 9112 3.2, and what browsers send raw beyond RFC 3986
	Path      = not(setOf(controls + "\t \"<>#?"))      // likewise, up to the query
	Value     = not(setOf(controls))                    // RFC 9110 5.5: HTAB, SP to ~, and 0x80 to 0xFF
	Hex       = setOf("0123456789abcdefABCDEF")
	Digit     = setOf("0123456789")
	inHost    = setOf("!$%&'()*+,-.;=_~" + alphanumeric) // RFC 3986 3.2.2, a name or an IPv4 address
	inAddress = setOf("0123456789abcdefABCDEF:.")        // of IPv6, without a zone (RFC 9110 7.2, RFC 6874)
)

const (
	alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	controls     = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0A\x0B\x0C\x0D\x0E\x0F" +
		"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1A\x1B\x1C\x1D\x1E\x1F\x7F"
)

func setOf(members string) (s Set) {
	for i := range len(members) {
		s[members[i]] = true
	}
	return s
}

func not(s Set) Set {
	for i := range s {
		s[i] = !s[i]
	}
	return s
}

// Run returns the index of the first byte of text, from n on, that is not in the set, or else the length of text.
func (s *Set) Run(text []byte, n int) int {
	for n < len(text) && s[text[n]] {
		n++
	}
	return n
}

// Only reports whether all bytes of text are in the set.
func (s *Set) Only(text []byte) bool { return s.Run(text, 0) == len(text) }

// IsBlank reports whether b is a space or a tab.
func IsBlank(b byte) bool { return b == Blank[0] || b == Blank[1] }

// Blank is all the white space that HTTP has (RFC 9110 5.6.3).
const Blank = " \t"

// EqualFold reports whether text is word, without regard to the case of ASCII letters.
func EqualFold(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, b := range text {
		if Lower[b] != Lower[word[i]] {
			return false
		}
	}
	return true
}

// Lower has each byte in lower case, if it is an ASCII letter.
var Lower = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// The functions below look at eight bytes at a time, the first in the lowest bits of a word, and set the top bit of each
// byte that they search for. Sums carry into the byte above and differences borrow from it, so only the lowest of these
// bits is exact.

const (
	eightfold = 0x0101010101010101 // times a byte: that byte eight times
	tops      = 0x80 * eightfold
)

// Control returns the index of the first control character of text, from n on, or else the length of text. HTAB is not
// one, but it is rare: after one the search goes on byte by byte.
func Control(text []byte, n int) int {
	for ; n < len(text)-15; n += 16 {
		low, high := suspects(eight(text, n)), suspects(eight(text, n+8))
		if low|high == 0 {
			continue
		}
		if low == 0 {
			low, n = high, n+8
		}
		n += bits.TrailingZeros64(low) / 8
		break
	}
	return Value.Run(text, n)
}

// suspects finds the control characters, HTAB, and "~" after 0xFF.
func suspects(x uint64) uint64 {
	return ((x - ' '*eightfold) | (x + eightfold)) &^ x & tops
}

// Word returns the index up to which text certainly consists of letters and hyphens, from n on, as nearly all names of
// fields do. It does not look at the last bytes if they are fewer than eight.
func Word(text []byte, n int) int {
	for ; n < len(text)-7; n += 8 {
		x := eight(text, n)
		lower := x | 0x20*eightfold
		letter := (lower + (0x80-'a')*eightfold) &^ (lower + (0x7f-'z')*eightfold)
		hyphen := ^((x ^ '-'*eightfold) + 0x7f*eightfold)
		if odd := (^(letter | hyphen) | x) & tops; odd != 0 {
			return n + bits.TrailingZeros64(odd)/8
		}
	}
	return n
}

// eight is written so that the compiler makes one load of it.
func eight(b []byte, n int) uint64 {
	_ = b[n+7]
	return uint64(b[n]) | uint64(b[n+1])<<8 | uint64(b[n+2])<<16 | uint64(b[n+3])<<24 |
		uint64(b[n+4])<<32 | uint64(b[n+5])<<40 | uint64(b[n+6])<<48 | uint64(b[n+7])<<56
}
