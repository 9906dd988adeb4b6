package httpd

import "math/bits"

// class is a set of octets.
type class [256]bool

var (
	token     = classOf("!#$%&'*+-.^_`|~" + alphanumeric)        // 9110 5.6.2
	inTarget  = classOf("!$%&'()*+,-./:;=?@[]_~" + alphanumeric) // RFC 3986 2, without the fragment's #
	inHost    = classOf("!$%&'()*+,-.;=_~" + alphanumeric)       // RFC 3986 3.2.2, a name or an IPv4 address
	inValue   = not(classOf(controls))                           // 9110 5.5: HTAB, SP to ~, and 0x80 to 0xFF
	hex       = classOf("0123456789abcdefABCDEF")
	digits    = classOf("0123456789")
	inAddress = classOf("0123456789abcdefABCDEF:.") // of IPv6; a zone has no place in a Host (RFC 9110 7.2, RFC 6874)
)

const (
	alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	controls     = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0A\x0B\x0C\x0D\x0E\x0F" +
		"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1A\x1B\x1C\x1D\x1E\x1F\x7F"
)

func classOf(members string) *class {
	c := new(class)
	for i := range len(members) {
		c[members[i]] = true
	}
	return c
}

func not(c *class) *class {
	for i := range c {
		c[i] = !c[i]
	}
	return c
}

// run returns where the first octet stands in text, from n on, that is not of the class, or else its length.
func (c *class) run(text []byte, n int) int {
	for n < len(text) && c[text[n]] {
		n++
	}
	return n
}

// only tells whether every octet is of the class; of none it is true.
func only(text []byte, c *class) bool {
	for _, b := range text {
		if !c[b] {
			return false
		}
	}
	return true
}

func digit(b byte) bool { return '0' <= b && b <= '9' }
func blank(b byte) bool { return b == white[0] || b == white[1] }

// white is all the white space there is (9112 5).
const white = " \t"

// equalFold compares without regard to case, as ASCII does.
func equalFold(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, b := range text {
		if lower[b] != lower[word[i]] {
			return false
		}
	}
	return true
}

var lower = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// What follows looks at eight octets at a time, the first in the lowest bits of a word, and sets the top bits of those
// that are not wanted. Sums carry, and differences borrow, into the octet above, so only the lowest of these bits says
// something.

const (
	eightfold = 0x0101010101010101 // times an octet: that octet eight times
	tops      = 0x80 * eightfold
)

// plain returns how many octets come before the first control character; HTAB is none.
func plain(text []byte) int { return control(text, 0) }

// control returns where the first control character stands in text, from n on, or else its length. HTAB is none; but it
// is rare, so behind one the table is good enough.
func control(text []byte, n int) int {
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
	return inValue.run(text, n)
}

// suspects are the control characters, HTAB, and "~" behind 0xFF.
func suspects(x uint64) uint64 {
	return ((x - ' '*eightfold) | (x + eightfold)) &^ x & tops
}

// word returns how far text consists of letters and hyphens, from n on, as nearly all names of fields do: at least. The
// last octets, if they are fewer than eight, are not looked at.
func word(text []byte, n int) int {
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
