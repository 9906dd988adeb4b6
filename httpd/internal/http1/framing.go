package http1

import (
	"bytes"
	"strconv"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Framing is what a head says about the bytes after it.
type Framing struct {
	Length     int64 // of the body, if it is not chunked
	Chunked    bool
	Persistent bool // the connection goes on after this request (RFC 9112 9.3)
	Connect    bool // the method is CONNECT, after which there is no further request
	Continue   bool // the client waits for 100 (Continue) before it sends the body (RFC 9110 10.1.1)
}

var (
	errTwoLengths    = &syntax.Refusal{Status: 400, Why: "Content-Length beside Transfer-Encoding"}                 // 9112 6.1
	errOldCoding     = &syntax.Refusal{Status: 400, Why: "Transfer-Encoding in a message of HTTP/1.0"}              // 9112 6.1
	errCoding        = &syntax.Refusal{Status: 400, Why: "a Transfer-Encoding that does not end in chunked"}        // 9112 6.3
	errUnknownCoding = &syntax.Refusal{Status: 501, Why: "a Transfer-Encoding other than chunked"}                  // 9112 6.1
	errLength        = &syntax.Refusal{Status: 400, Why: "a Content-Length that is not a number, or more than one"} // 9112 6.3
	errHost          = &syntax.Refusal{Status: 400, Why: "no Host, more than one, or none that is valid"}           // 9112 3.2
	errForm          = &syntax.Refusal{Status: 400, Why: "a target of a form that the method does not have"}        // 9112 3.2
	errConnect       = &syntax.Refusal{Status: 501, Why: "CONNECT, which is for proxies"}                           // 9112 3.2.3
	errExpectation   = &syntax.Refusal{Status: 417, Why: "an expectation other than 100-continue"}                  // 9110 10.1.1
)

// Framing is called when the head has ended. Of a request it checks target and Host, and sets Authority, Path and Query.
// After a refusal the connection has to be closed, since it is unknown where the next message begins. A response that says
// nothing of its body has a Length of -1: the body ends with the connection. f has to be zero before.
func (p *Parser) Framing(in []byte, f *Framing) (err error) {
	if p.Count[syntax.TransferEncoding]+p.Count[syntax.ContentLength] > 0 {
		if err = p.length(in, f); err != nil {
			return err
		}
	}
	if p.Response {
		if !f.Chunked && p.Count[syntax.ContentLength] == 0 {
			f.Length = -1
		}
	} else if err = p.place(in); err != nil {
		return err
	}
	f.Connect = string(p.Method.Of(in)) == "CONNECT"
	switch {
	case f.Connect:
	case p.Count[syntax.Connection] > 0:
		f.Persistent = p.persists(in)
	default:
		f.Persistent = p.Minor > 0
	}
	if p.Count[syntax.Expect] > 0 {
		f.Continue, err = p.expectation(in, f)
	}
	return err
}

// length decides where the body ends by nothing but these two fields (9112 6.3): no method, media type or other field
// changes that.
func (p *Parser) length(in []byte, f *Framing) (err error) {
	coded, sized := p.Count[syntax.TransferEncoding] > 0, p.Count[syntax.ContentLength] > 0
	switch {
	case coded && sized:
		return errTwoLengths
	case coded && p.Minor == 0:
		return errOldCoding
	case coded:
		f.Chunked = true
		return p.coding(in)
	case sized:
		value := p.first(syntax.ContentLength).Of(in)
		f.Length, err = strconv.ParseInt(string(value), 10, 64)
		if err != nil || p.Count[syntax.ContentLength] > 1 || !syntax.Digit.Only(value) { // ParseInt takes a sign
			return errLength
		}
	}
	return nil
}

// coding wants "chunked" as the only coding. Others before it are unknown here. After it, twice, with a parameter or
// not at all it is not a framing.
func (p *Parser) coding(in []byte) error {
	last, unknown, early := false, false, false
	p.elements(in, syntax.TransferEncoding, func(coding []byte) {
		early = early || last
		last = syntax.EqualFold(coding, "chunked")
		unknown = unknown || !last
	})
	switch {
	case !last || early:
		return errCoding
	case unknown:
		return errUnknownCoding
	}
	return nil
}

// place checks Host and target (9112 3.2) and takes them apart. The authority of an absolute target replaces Host.
func (p *Parser) place(in []byte) error {
	if p.Count[syntax.Host] > 1 || p.Count[syntax.Host] == 0 && p.Minor > 0 {
		return errHost
	}
	p.Authority = p.first(syntax.Host)
	if !syntax.ValidHost(p.Authority.Of(in)) {
		return errHost
	}
	method, target := p.Method.Of(in), p.Target.Of(in)
	p.Path = p.Target
	switch {
	case string(method) == "CONNECT" && !p.Limits.Connect:
		return errConnect
	case target[0] == '/':
	case string(method) == "CONNECT": // the authority alone (9112 3.2.3), so there is no path
		if n := len(syntax.WithoutPort(target)); n == 0 || n == len(target) || !syntax.ValidHost(target) {
			return errForm
		}
		p.Authority, p.Path.From = p.Target, p.Target.To
	case string(target) == "*":
		if string(method) != "OPTIONS" {
			return errForm
		}
	default:
		if err := p.absolute(in); err != nil {
			return err
		}
	}
	if p.Query.From < p.Query.To { // at the "?"
		p.Path.To = p.Query.From
		p.Query.From++
	}
	return nil
}

// absolute takes "http://authority/path?query" apart (9112 3.2.2).
func (p *Parser) absolute(in []byte) error {
	target := p.Target.Of(in)
	for _, scheme := range []string{"http://", "https://"} {
		if len(target) < len(scheme) || !syntax.EqualFold(target[:len(scheme)], scheme) {
			continue
		}
		authority := target[len(scheme):]
		if i := bytes.IndexAny(authority, "/?"); i >= 0 {
			authority = authority[:i]
		}
		if len(authority) == 0 || authority[0] == ':' || !syntax.ValidHost(authority) {
			return errHost // 9110 4.2.1: an http URI with an empty host is invalid
		}
		p.Authority.From = p.Target.From + uint32(len(scheme))
		p.Authority.To = p.Authority.From + uint32(len(authority))
		p.Path.From = p.Authority.To
		return nil
	}
	return errForm
}

// persists reports whether the connection goes on after this request (RFC 9112 9.3): "close" wins.
func (p *Parser) persists(in []byte) bool {
	closes, keeps := false, p.Minor > 0
	p.elements(in, syntax.Connection, func(option []byte) {
		closes = closes || syntax.EqualFold(option, "close")
		keeps = keeps || syntax.EqualFold(option, "keep-alive")
	})
	return keeps && !closes
}

// expectation accepts 100-continue alone, which counts from HTTP/1.1 on and with a body to come (RFC 9110 10.1.1).
func (p *Parser) expectation(in []byte, f *Framing) (bool, error) {
	for i := range p.Fields {
		if f := &p.Fields[i]; f.Kind == syntax.Expect && !syntax.EqualFold(f.Value.Of(in), "100-continue") {
			return false, errExpectation
		}
	}
	return p.Minor > 0 && (f.Chunked || f.Length > 0), nil
}

// Upgrades reports whether a request asks to switch to a protocol, or a response says so, which HTTP/1.0 cannot (RFC 9110
// 7.8).
func (p *Parser) Upgrades(in []byte, protocol string) bool {
	if p.Count[syntax.Upgrade] == 0 {
		return false
	}
	asks, named := false, false
	p.elements(in, syntax.Connection, func(option []byte) { asks = asks || syntax.EqualFold(option, "upgrade") })
	p.elements(in, syntax.Upgrade, func(name []byte) { named = named || syntax.EqualFold(name, protocol) })
	return p.Minor > 0 && asks && named
}

// first returns the value of the first field of a kind.
func (p *Parser) first(k syntax.Kind) syntax.Span {
	for i := range p.Fields {
		if p.Fields[i].Kind == k {
			return p.Fields[i].Value
		}
	}
	return syntax.Span{}
}

// elements calls f with each element of the comma-separated lists in the fields of one kind.
func (p *Parser) elements(in []byte, k syntax.Kind, f func(element []byte)) {
	for i := range p.Fields {
		if p.Fields[i].Kind != k {
			continue
		}
		for rest, more := p.Fields[i].Value.Of(in), true; more; {
			var element []byte
			element, rest, more = bytes.Cut(rest, []byte{','})
			f(bytes.Trim(element, syntax.Blank))
		}
	}
}
