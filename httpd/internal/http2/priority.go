package http2

import (
	"bytes"
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
	c := cursor(value)
	c.skip(" ")
	for len(c) > 0 {
		key, v, ok := c.member()
		if !ok {
			return DefaultUrgency, false
		}
		// The last of several members of one name counts (RFC 8941 4.2.2), even one that is ignored.
		switch string(key) {
		case "u":
			if urgency = DefaultUrgency; v.kind == integer && 0 <= v.n && v.n <= 7 {
				urgency = uint8(v.n)
			}
		case "i":
			incremental = v.kind == boolean && v.n == 1
		}
	}
	return urgency, incremental
}

// cursor is what is left of a structured field. Its methods take from the front, and report whether what they want is
// there.
type cursor []byte

// item is a value. Of most kinds nothing is kept.
type item struct {
	kind kind
	n    int64 // of an integer; 1 of a boolean that is true
}

type kind uint8

const (
	other kind = iota
	integer
	boolean
)

const small = "abcdefghijklmnopqrstuvwxyz"

// The sets of RFC 8941 3.1.2 and 3.3. syntax.Token has most of inToken.
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

// member takes a member of a dictionary, and the comma after it (RFC 8941 4.2.2).
func (c *cursor) member() (key []byte, v item, ok bool) {
	key, v = c.key(), item{boolean, 1}
	if ok = len(key) > 0; ok && c.next('=') {
		if c.next('(') {
			v, ok = item{}, c.list()
		} else {
			v, ok = c.item()
		}
	}
	if !ok || !c.parameters() {
		return nil, v, false
	}
	if c.skip(syntax.Blank); len(*c) == 0 {
		return key, v, true
	}
	ok = c.next(',')
	c.skip(syntax.Blank)
	return key, v, ok && len(*c) > 0
}

// list takes an inner list, of which the parenthesis is taken (RFC 8941 4.2.1.2).
func (c *cursor) list() bool {
	for {
		c.skip(" ")
		if c.next(')') {
			return true
		}
		if _, ok := c.item(); !ok || !c.parameters() {
			return false
		}
		if len(*c) == 0 || (*c)[0] != ' ' && (*c)[0] != ')' {
			return false
		}
	}
}

// parameters takes the parameters of an item, which have no meaning here (RFC 8941 4.2.3.2).
func (c *cursor) parameters() bool {
	for c.next(';') {
		c.skip(" ")
		if len(c.key()) == 0 {
			return false
		}
		if c.next('=') {
			if _, ok := c.item(); !ok {
				return false
			}
		}
	}
	return true
}

// item takes a value without parameters (RFC 8941 4.2.3.1).
func (c *cursor) item() (v item, ok bool) {
	switch {
	case len(*c) == 0:
		return v, false
	case c.next('?'):
		v = item{kind: boolean}
		if c.next('1') {
			v.n = 1
			return v, true
		}
		return v, c.next('0')
	case c.next(':'):
		c.run(&inBinary)
		return v, c.next(':')
	case c.next('"'):
		return v, c.quoted()
	case firstOfToken[(*c)[0]]:
		c.run(&inToken)
		return v, true
	}
	return c.number()
}

// number takes an integer or a decimal (RFC 8941 4.2.4).
func (c *cursor) number() (v item, ok bool) {
	sign := int64(1)
	if c.next('-') {
		sign = -1
	}
	digits := c.run(&syntax.Digit)
	if c.next('.') {
		fraction := c.run(&syntax.Digit)
		return v, 0 < len(digits) && len(digits) <= 12 && 0 < len(fraction) && len(fraction) <= 3
	}
	v = item{kind: integer}
	for _, d := range digits[:min(len(digits), 15)] {
		v.n = v.n*10 + sign*int64(d-'0')
	}
	return v, 0 < len(digits) && len(digits) <= 15
}

// quoted takes the rest of a string (RFC 8941 4.2.5).
func (c *cursor) quoted() bool {
	for len(*c) > 0 {
		b := (*c)[0]
		*c = (*c)[1:]
		switch {
		case b == '"':
			return true
		case b < ' ' || b > '~':
			return false
		case b == '\\' && !c.next('"') && !c.next('\\'):
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

func (c *cursor) skip(blanks string) { *c = bytes.TrimLeft(*c, blanks) }
