package http2

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// DefaultUrgency is the urgency of a request that says nothing of it (RFC 9218 4.1). 0 is the most urgent.
const DefaultUrgency = 3

// ParsePriority reads the value of a Priority field: a dictionary (RFC 8941 3.2) with u, the urgency from 0 to 7, and i,
// whether parts of the response are of use before it is whole. A member of another type, size or name is ignored (RFC
// 9218 4); so is all of a value that is not a dictionary.
func ParsePriority(value []byte) (urgency uint8, incremental bool) {
	return updatePriority(value, DefaultUrgency, false)
}

// updatePriority is ParsePriority after other lines of the field, which said this (RFC 9110 5.3).
func updatePriority(value []byte, urgency uint8, incremental bool) (uint8, bool) {
	c := cursor(bytes.Trim(value, " "))
	for len(c) > 0 {
		key, item, ok := c.member()
		if !ok {
			return DefaultUrgency, false
		}
		// The last of several members of one name counts (RFC 8941 4.2.2), even one that is ignored.
		switch string(key) {
		case "u":
			n, err := strconv.ParseUint(strings.TrimPrefix(string(item), "-"), 10, 8) // "-0" is a number, too
			if urgency = DefaultUrgency; err == nil && n <= 7 && (item[0] != '-' || n == 0) {
				urgency = uint8(n)
			}
		case "i":
			incremental = len(item) == 0 || string(item) == "?1"
		}
	}
	return urgency, incremental
}

// cursor is what is left of a structured field. Its methods take from the front, and report whether what they want is
// there.
type cursor []byte

const small = "abcdefghijklmnopqrstuvwxyz"

// The sets of RFC 8941 3.1.2, 3.3.4 and 3.3.5.
var (
	firstOfKey   = setOf("*" + small)
	inKey        = setOf("_-.*0123456789" + small)
	firstOfToken = setOf("*" + small + strings.ToUpper(small))
	inToken      = setOf("!#$%&'*+-.^_`|~:/0123456789" + small + strings.ToUpper(small))
	inBinary     = setOf("+/=0123456789" + small + strings.ToUpper(small))
)

func setOf(members string) (s syntax.Set) {
	for i := range len(members) {
		s[members[i]] = true
	}
	return s
}

// member takes a member of a dictionary, and the comma after it (RFC 8941 4.2.2). The item has no parameters; it is empty
// if there is only a key, which means true.
func (c *cursor) member() (key, item []byte, ok bool) {
	key = c.key()
	if ok = len(key) > 0; ok && c.next('=') {
		from := *c
		if ok = c.next('('); ok {
			ok = c.list()
		} else {
			ok = c.item()
		}
		item = from[:len(from)-len(*c)]
	}
	if !ok || !c.parameters() {
		return nil, nil, false
	}
	if *c = bytes.TrimLeft(*c, syntax.Blank); len(*c) == 0 {
		return key, item, true
	}
	ok = c.next(',')
	*c = bytes.TrimLeft(*c, syntax.Blank)
	return key, item, ok && len(*c) > 0
}

// list takes the rest of an inner list (RFC 8941 4.2.1.2).
func (c *cursor) list() bool {
	for {
		*c = bytes.TrimLeft(*c, " ")
		if c.next(')') {
			return true
		}
		if !c.item() || !c.parameters() || len(*c) == 0 || (*c)[0] != ' ' && (*c)[0] != ')' {
			return false
		}
	}
}

// parameters takes the parameters of an item, which have no meaning here (RFC 8941 4.2.3.2).
func (c *cursor) parameters() bool {
	for c.next(';') {
		*c = bytes.TrimLeft(*c, " ")
		if len(c.key()) == 0 || c.next('=') && !c.item() {
			return false
		}
	}
	return true
}

// item takes a value without parameters (RFC 8941 4.2.3.1).
func (c *cursor) item() bool {
	switch {
	case c.next('?'):
		return c.next('0') || c.next('1')
	case c.next(':'):
		c.run(&inBinary)
		return c.next(':')
	case c.next('"'):
		return c.quoted()
	case len(*c) > 0 && firstOfToken[(*c)[0]]:
		return len(c.run(&inToken)) > 0
	}
	c.next('-')
	whole := len(c.run(&syntax.Digit))
	if !c.next('.') {
		return 0 < whole && whole <= 15
	}
	part := len(c.run(&syntax.Digit))
	return 0 < whole && whole <= 12 && 0 < part && part <= 3
}

// quoted takes the rest of a string (RFC 8941 4.2.5).
func (c *cursor) quoted() bool {
	for len(*c) > 0 {
		b := (*c)[0]
		*c = (*c)[1:]
		switch {
		case b == '"':
			return true
		case b < ' ' || b > '~' || b == '\\' && !c.next('"') && !c.next('\\'):
			return false
		}
	}
	return false
}

// key takes the name of a member or of a parameter (RFC 8941 4.2.3.3), which is empty if there is none.
func (c *cursor) key() []byte {
	if len(*c) == 0 || !firstOfKey[(*c)[0]] {
		return nil
	}
	return c.run(&inKey)
}

// next takes a byte if it is b.
func (c *cursor) next(b byte) bool {
	if len(*c) == 0 || (*c)[0] != b {
		return false
	}
	*c = (*c)[1:]
	return true
}

// run takes all bytes up to the first that is not in the set.
func (c *cursor) run(s *syntax.Set) []byte {
	n := s.Run(*c, 0)
	taken := (*c)[:n]
	*c = (*c)[n:]
	return taken
}
