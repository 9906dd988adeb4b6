package syntax

import (
	"bytes"
	"fmt"
)

// ValidHost reports whether text is uri-host [ ":" port ], which may be empty (RFC 9110 7.2). A user is not part of it.
func ValidHost(text []byte) bool {
	end := 0
	if len(text) > 0 && text[0] == '[' {
		end = bytes.IndexByte(text, ']') + 1
		if end < 3 || !inAddress.Only(text[1:end-1]) {
			return false
		}
	} else {
		end = inHost.Run(text, 0)
	}
	return end == len(text) || text[end] == ':' && Digit.Only(text[end+1:])
}

// WithoutPort returns the host of "host:port". The host may be an IPv6 address in brackets.
func WithoutPort(host []byte) []byte {
	name := 0
	if len(host) > 0 && host[0] == '[' {
		name = bytes.IndexByte(host, ']') + 1
	}
	if i := bytes.IndexByte(host[name:], ':'); i >= 0 {
		return host[:name+i]
	}
	return host
}

// Unescape appends text to to, with each escape replaced by its byte (RFC 3986 2.1). It reports whether every percent
// sign begins an escape.
func Unescape(to, text []byte) (unescaped []byte, ok bool) {
	for i := 0; i < len(text); i++ {
		b := text[i]
		if b == '%' {
			if i+2 >= len(text) || !Hex[text[i+1]] || !Hex[text[i+2]] {
				return to, false
			}
			b = Nibble(text[i+1])<<4 | Nibble(text[i+2])
			i += 2
		}
		to = append(to, b)
	}
	return to, true
}

// Escape returns text, which has no control characters, with each byte that is not ASCII as an escape.
func Escape(text []byte) (escaped []byte) {
	for _, b := range text {
		if b > '~' {
			escaped = fmt.Appendf(escaped, "%%%02X", b)
		} else {
			escaped = append(escaped, b)
		}
	}
	return escaped
}

// Nibble returns the value of a hexadecimal digit.
func Nibble(digit byte) byte {
	switch {
	case Digit[digit]:
		return digit - '0'
	case digit >= 'a':
		return digit - 'a' + 10
	}
	return digit - 'A' + 10
}
