package deflate

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Terms are what both sides have agreed upon, as one of them sees it. The zero Terms mean no context takeover, in
// either direction.
type Terms struct {
	Sends    bool // a message that is sent may refer to those before it
	Receives bool // and one that is received
}

var (
	// ErrSyntax is a field Sec-WebSocket-Extensions that is not a list of extensions (RFC 6455 9.1).
	ErrSyntax = errors.New("websocket: malformed extensions")
	// ErrAnswer is an answer to an Offer that a client must not accept (RFC 7692 7.1).
	ErrAnswer = errors.New("websocket: the server has agreed to extensions that were not offered")
)

const (
	extension = "permessage-deflate"
	serverNo  = "server_no_context_takeover"
	clientNo  = "client_no_context_takeover"
	serverMax = "server_max_window_bits"
	clientMax = "client_max_window_bits"
)

// Answer returns the answer of a server to a client's fields Sec-WebSocket-Extensions: the first offer that it can accept.
// If there is none, the answer is "". takeover is whether the server wants context takeover; a client can prevent it.
func Answer(fields iter.Seq[[]byte], takeover bool) (terms Terms, answer string, err error) {
	all, err := parse(fields)
	for _, x := range all {
		p, ok := x.read(true)
		if !ok || p.serverBits != 0 && p.serverBits != 15 {
			continue // a smaller window is more than the compressor can promise
		}
		terms = Terms{Sends: takeover && !p.serverNo, Receives: takeover && !p.clientNo}
		answer = extension
		if !terms.Sends {
			answer += "; " + serverNo
		}
		if !terms.Receives {
			answer += "; " + clientNo
		}
		if p.serverBits != 0 {
			answer += "; " + serverMax + "=15" // it has to be said (RFC 7692 7.1.2.1)
		}
		return terms, answer, nil
	}
	return Terms{}, "", err
}

// Offer is the offer of a client.
func Offer(takeover bool) string {
	if takeover {
		return extension
	}
	return extension + "; " + serverNo + "; " + clientNo
}

// Accept reads the answer of a server to an Offer. on reports whether messages may be compressed. With an error the client
// has to fail the connection.
func Accept(fields iter.Seq[[]byte], takeover bool) (terms Terms, on bool, err error) {
	all, err := parse(fields)
	if len(all) == 0 || err != nil {
		return Terms{}, false, err
	}
	p, ok := all[0].read(false)
	if !ok || len(all) > 1 || p.clientMax || !takeover && !p.serverNo {
		return Terms{}, false, ErrAnswer
	}
	return Terms{Sends: takeover && !p.clientNo, Receives: !p.serverNo}, true, nil
}

// params are the parameters of permessage-deflate.
type params struct {
	serverNo, clientNo bool
	clientMax          bool
	serverBits         int // 0: not said
}

// read reports whether x is permessage-deflate with valid parameters, none of them twice, in an offer or in an answer.
func (x *named) read(offer bool) (p params, ok bool) {
	for i, v := range x.params {
		bits, valid := windowBits(v.value)
		switch {
		case slices.ContainsFunc(x.params[:i], func(o param) bool { return o.name == v.name }):
			return p, false
		case v.name == serverNo && !v.valued:
			p.serverNo = true
		case v.name == clientNo && !v.valued:
			p.clientNo = true
		case v.name == serverMax && v.valued && valid:
			p.serverBits = bits
		case v.name == clientMax && (v.valued && valid || !v.valued && offer):
			p.clientMax = true
		default:
			return p, false
		}
	}
	return p, x.name == extension
}

// windowBits reads 8 to 15, without leading zeroes (RFC 7692 7.1.2).
func windowBits(value string) (bits int, ok bool) {
	bits, err := strconv.Atoi(value)
	return bits, err == nil && bits >= 8 && bits <= 15 && strconv.Itoa(bits) == value
}

// named is an extension of a list.
type named struct {
	name   string
	params []param
}

type param struct {
	name, value string
	valued      bool
}

// parse reads lists of extensions (RFC 6455 9.1), whose elements may be empty.
func parse(fields iter.Seq[[]byte]) (all []named, err error) {
	for field := range fields {
		for s := blank(field); len(s) > 0; s = blank(s) {
			if s[0] != ',' {
				var x named
				if s, err = x.parse(s); err != nil {
					return nil, err
				}
				all = append(all, x)
			}
			if len(s) > 0 && s[0] != ',' {
				return nil, ErrSyntax
			}
			s = s[min(1, len(s)):]
		}
	}
	return all, nil
}

// parse reads an extension, and returns the rest.
func (x *named) parse(s []byte) ([]byte, error) {
	if x.name, s = token(s); x.name == "" {
		return nil, ErrSyntax
	}
	for s = blank(s); len(s) > 0 && s[0] == ';'; s = blank(s) {
		var p param
		if p.name, s = token(blank(s[1:])); p.name == "" {
			return nil, ErrSyntax
		}
		if s = blank(s); len(s) > 0 && s[0] == '=' {
			p.valued = true
			if p.value, s = value(blank(s[1:])); p.value == "" {
				return nil, ErrSyntax
			}
		}
		x.params = append(x.params, p)
	}
	return s, nil
}

// value reads a token, with quotes or without; "" is none.
func value(s []byte) (string, []byte) {
	if len(s) == 0 || s[0] != '"' {
		return token(s)
	}
	var text []byte
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"' && syntax.Token.Only(text):
			return string(text), s[i+1:]
		case s[i] == '"':
			return "", nil
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		text = append(text, s[i])
	}
	return "", nil
}

func token(s []byte) (string, []byte) {
	n := syntax.Token.Run(s, 0)
	return string(s[:n]), s[n:]
}

func blank(s []byte) []byte { return bytes.TrimLeft(s, syntax.Blank) }
