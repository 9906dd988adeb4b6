package httpd

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

// equalFold compares with a word in lower case, as ASCII does.
func equalFold(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, b := range text {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}
