package httpd

import (
	"bytes"
	"math"
)

// framing is where the body of a request ends.
type framing struct {
	chunked bool
	length  int64 // if it is not chunked
}

var (
	errTwoLengths    = &refusal{400, "Content-Length beside Transfer-Encoding"}              // 9112 6.1
	errOldCoding     = &refusal{400, "Transfer-Encoding in a request of HTTP/1.0"}           // 9112 6.1
	errCoding        = &refusal{400, "a Transfer-Encoding that does not end in chunked"}     // 9112 6.3
	errUnknownCoding = &refusal{501, "a Transfer-Encoding other than chunked"}               // 9112 6.1
	errLength        = &refusal{400, "a Content-Length that is no number, or more than one"} // 9112 6.3
	errHost          = &refusal{400, "no Host, more than one, or none that is valid"}        // 9112 3.2
	errForm          = &refusal{400, "a target of a form that the method does not have"}     // 9112 3.2
	errConnect       = &refusal{501, "CONNECT, which is for proxies"}                        // 9112 3.2.3
)

// framing decides how long the body is, by nothing but these two fields (9112 6.3): no method, media type or other
// field has a say. After a refusal the connection is to be closed, since nobody knows where the next request is.
func (h *head) framing(octets []byte) (framing, error) {
	switch {
	case h.special[transferEncoding] == 0 && h.special[contentLength] == 0:
		return framing{}, nil
	case h.special[transferEncoding] == 0:
		return h.byLength(octets)
	case h.special[contentLength] > 0:
		return framing{}, errTwoLengths
	case h.minor == 0:
		return framing{}, errOldCoding
	}
	return h.byCoding(octets)
}

// byLength wants one field of digits, and as many bytes as can be counted.
func (h *head) byLength(octets []byte) (framing, error) {
	var n int64
	err := error(errLength)
	h.each(octets, contentLength, func(value []byte) bool {
		if h.special[contentLength] > 1 || len(value) == 0 {
			return false
		}
		for _, b := range value {
			if !digit(b) || n > (math.MaxInt64-9)/10 {
				return false
			}
			n = 10*n + int64(b-'0')
		}
		err = nil
		return false
	})
	if err != nil {
		return framing{}, err
	}
	return framing{length: n}, nil
}

// byCoding wants "chunked" as the only coding. Others in front of it are unknown here; behind it, twice, with a
// parameter or not at all it is no framing.
func (h *head) byCoding(octets []byte) (framing, error) {
	last, unknown, early := false, false, false
	h.each(octets, transferEncoding, func(value []byte) bool {
		for rest, more := value, true; more; {
			var one []byte
			one, rest, more = bytes.Cut(rest, []byte{','})
			early = early || last
			last = equalFold(bytes.Trim(one, white), "chunked")
			unknown = unknown || !last
		}
		return true
	})
	switch {
	case !last || early:
		return framing{}, errCoding
	case unknown:
		return framing{}, errUnknownCoding
	}
	return framing{chunked: true}, nil
}

// place checks the target and the Host (9112 3.2), and returns the authority: that of an absolute target, which
// replaces the field's.
func (h *head) place(octets []byte) (authority []byte, err error) {
	if h.special[host] > 1 || h.special[host] == 0 && h.minor > 0 {
		return nil, errHost
	}
	h.each(octets, host, func(value []byte) bool { authority = value; return false })
	if !validHost(authority) {
		return nil, errHost
	}
	method, target := h.method.of(octets), h.target.of(octets)
	switch {
	case string(method) == "CONNECT":
		return nil, errConnect
	case target[0] == '/':
		return authority, nil
	case string(target) == "*":
		if string(method) != "OPTIONS" {
			return nil, errForm
		}
		return authority, nil
	}
	return absolute(target)
}

// absolute returns the authority of "http://authority/path?query" (9112 3.2.2).
func absolute(target []byte) ([]byte, error) {
	for _, scheme := range []string{"http://", "https://"} {
		if len(target) < len(scheme) || !equalFold(target[:len(scheme)], scheme) {
			continue
		}
		authority := target[len(scheme):]
		if i := bytes.IndexAny(authority, "/?"); i >= 0 {
			authority = authority[:i:i]
		}
		if len(authority) == 0 || authority[0] == ':' || !validHost(authority) {
			return nil, errHost // 9110 4.2.1: an http URI with an empty host is invalid
		}
		return authority, nil
	}
	return nil, errForm
}

// validHost is uri-host [ ":" port ], which may be empty (9110 7.2). There is no user in it.
func validHost(text []byte) bool {
	end := 0
	if len(text) > 0 && text[0] == '[' {
		end = bytes.IndexByte(text, ']') + 1
		if end < 3 || !only(text[1:end-1], inAddress) {
			return false
		}
	} else {
		for end < len(text) && inHost[text[end]] {
			end++
		}
	}
	return end == len(text) || text[end] == ':' && only(text[end+1:], digits)
}
