package deflate

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

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
		for element := range strings.SplitSeq(string(field), ",") {
			if strings.Trim(element, syntax.Blank) == "" {
				continue
			}
			x, ok := extensionOf(element)
			if !ok {
				return nil, ErrSyntax
			}
			all = append(all, x)
		}
	}
	return all, nil
}

// extensionOf reads an extension and its parameters. Commas and semicolons need no care: a value is a token, with quotes or
// without.
func extensionOf(element string) (x named, ok bool) {
	for part := range strings.SplitSeq(element, ";") {
		name, value, valued := strings.Cut(part, "=")
		p := param{strings.Trim(name, syntax.Blank), strings.Trim(value, syntax.Blank), valued}
		if n := len(p.value); n > 1 && p.value[0] == '"' && p.value[n-1] == '"' {
			p.value = strings.ReplaceAll(p.value[1:n-1], `\`, "")
		}
		switch {
		case !isToken(p.name) || valued && (x.name == "" || !isToken(p.value)):
			return x, false
		case x.name == "":
			x.name = p.name
		default:
			x.params = append(x.params, p)
		}
	}
	return x, true
}

func isToken(s string) bool { return s != "" && syntax.Token.Only([]byte(s)) }
