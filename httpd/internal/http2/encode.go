package http2

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Field blocks are made without a dynamic table and without Huffman's code: names come from the static table, values as
// they are (RFC 7541 6.2.2). So a block depends on nothing that was sent before, and costs little more than a copy.

// AppendNoTable begins the first field block that is sent on a connection: it says that there is no dynamic table. A peer
// that has announced a smaller one than there is by default waits for that (RFC 7541 4.2).
func AppendNoTable(to []byte) []byte { return append(to, 0x20) }

const (
	indexed      = 0x80 // RFC 7541 6.1
	never        = 0x10 // RFC 7541 6.2.3: nobody on the way may put it in a table
	prefix       = 0x0F // the largest index, or length less one bit, that fits into the first byte
	firstOrdinal = 15   // in the static table: all before are pseudo-fields

	authorityIndex = 1 // of :authority in the static table, and so on
	methodIndex    = 2 // with GET, and then POST
	pathIndex      = 4 // with "/"
	schemeIndex    = 6 // with http, and then https
	statusIndex    = 8 // with 200, and then six others
)

// AppendStatus appends the field :status, which is the first of a response (RFC 9113 8.3.2). The status has three digits.
func AppendStatus(to []byte, status int) []byte {
	for i, s := range [...]int{200, 204, 206, 304, 400, 404, 500} {
		if s == status {
			return append(to, indexed|statusIndex+byte(i))
		}
	}
	return append(to, statusIndex, 3, '0'+byte(status/100), '0'+byte(status/10%10), '0'+byte(status%10))
}

// AppendRequest appends the pseudo-fields, which are the first of a request (RFC 9113 8.3.1). protocol is that of an extended
// CONNECT (RFC 8441 4), or empty.
func AppendRequest(to []byte, method, scheme, authority, target, protocol string) []byte {
	switch method {
	case "GET":
		to = append(to, indexed|methodIndex)
	case "POST":
		to = append(to, indexed|methodIndex+1)
	default:
		to = appendText(append(to, methodIndex), method)
	}
	if scheme == "https" {
		to = append(to, indexed|schemeIndex+1)
	} else {
		to = append(to, indexed|schemeIndex)
	}
	to = appendText(append(to, authorityIndex), authority)
	if target == "/" {
		to = append(to, indexed|pathIndex)
	} else {
		to = appendText(append(to, pathIndex), target)
	}
	if protocol != "" {
		to = AppendField(to, ":protocol", protocol)
	}
	return to
}

// appendText appends a string that is not in Huffman's code.
func appendText(to []byte, text string) []byte { return append(appendLength(to, len(text)), text...) }

// AppendField appends a field whose name is a token and whose value has no control character. The name is sent in lower
// case and the value without blanks around it, as they have to be (RFC 9113 8.2.1). Set-Cookie and the credentials are
// marked as never to be indexed (RFC 7541 7.1.3).
func AppendField(to []byte, name, value string) []byte {
	return appendField(to, syntax.Bytes(name), syntax.Bytes(value))
}

// AppendLines appends fields that are lines, each after CRLF: "\r\nName: value\r\nName: value". It leaves out what
// concerns a connection of HTTP/1, which is not allowed (RFC 9113 8.2.2).
func AppendLines(to, lines []byte) []byte {
	for len(lines) > len("\r\n") {
		lines = lines[len("\r\n"):]
		end := bytes.IndexByte(lines, '\r')
		if end < 0 {
			end = len(lines)
		}
		if colon := bytes.IndexByte(lines[:end], ':'); colon > 0 && !ofConnection(lines[:colon]) {
			to = appendField(to, lines[:colon], lines[colon+1:end])
		}
		lines = lines[end:]
	}
	return to
}

func appendField(to, name, value []byte) []byte {
	index := indexOf(name)
	first := byte(0)
	switch index {
	case authorization, proxyAuthorization, setCookie:
		first = never
	}
	if index > 0 { // and at least prefix
		to = append(to, first|prefix, index-prefix)
	} else {
		to = appendLength(append(to, first), len(name))
		for _, b := range name {
			to = append(to, syntax.Lower[b])
		}
	}
	value = bytes.Trim(value, syntax.Blank)
	return append(appendLength(to, len(value)), value...)
}

// appendLength appends the length of a string that is not in Huffman's code: an integer with a prefix of 7 bits (RFC 7541 5.1).
func appendLength(to []byte, n int) []byte {
	if n < 0x7F {
		return append(to, byte(n))
	}
	to = append(to, 0x7F)
	for n -= 0x7F; n >= 0x80; n >>= 7 {
		to = append(to, byte(n)|0x80)
	}
	return append(to, byte(n))
}

// AppendContentLength appends the field Content-Length.
func AppendContentLength(to []byte, n int64) []byte {
	to = append(to, prefix, contentLength-prefix, 0)
	at := len(to)
	to = strconv.AppendInt(to, n, 10) // fewer than 0x7F digits
	to[at-1] = byte(len(to) - at)
	return to
}

// ofConnection reports whether a field of this name concerns a connection of HTTP/1 (RFC 9113 8.2.2), as TE can.
func ofConnection(name []byte) bool {
	switch len(name) {
	case len("upgrade"), len("connection"), len("proxy-connection"), len("transfer-encoding"):
		for _, n := range [...]string{"upgrade", "connection", "keep-alive", "proxy-connection", "transfer-encoding"} {
			if syntax.EqualFold(name, n) {
				return true
			}
		}
	}
	return false
}

const (
	authorization      = 23
	contentLength      = 28
	proxyAuthorization = 49
	setCookie          = 55
)

// names are the names of the static table from firstOrdinal on (RFC 7541 A).
var names = strings.Fields(`
	accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow
	authorization cache-control content-disposition content-encoding content-language content-length content-location
	content-range content-type cookie date etag expect expires from host if-match if-modified-since if-none-match
	if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization
	range referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary
	via www-authenticate
`)

// byLength has the indices of names of each length: few, most of which differ in their first letter.
var byLength = func() (table [28][]byte) {
	for i, name := range names {
		table[len(name)] = append(table[len(name)], byte(firstOrdinal+i))
	}
	return table
}()

// indexOf returns the index of a name in the static table, or 0.
func indexOf(name []byte) byte {
	if len(name) < len(byLength) {
		for _, i := range byLength[len(name)] {
			if syntax.EqualFold(name, names[i-firstOrdinal]) {
				return i
			}
		}
	}
	return 0
}
