package http2

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Head is what a field block says of a request or response, or what its trailers are.
type Head struct {
	syntax.Head
	Protocol syntax.Span     // of an extended CONNECT (RFC 8441 4)
	Length   int64           // what Content-Length says; -1: nothing
	Continue bool            // the client waits for 100 (Continue) before it sends the body (RFC 9110 10.1.1)
	Status   uint16          // of a response
	Urgency  uint8           // of Priority (RFC 9218 4.1)
	Refused  *syntax.Refusal // a request has to be answered with this, and a response is of no use. The rest may be incomplete
}

// Reset prepares h for the next request. It keeps memory that is not large.
func (h *Head) Reset() {
	text, fields := h.Text[:0], h.Fields[:0]
	if cap(text) > keptText {
		text = nil
	}
	if cap(fields) > 2*maxFields {
		fields = nil
	}
	*h = Head{Head: syntax.Head{Text: text, Fields: fields}, Length: -1, Urgency: DefaultUrgency}
}

const keptText = 4 << 10

// forget drops all but the pseudo-fields of a head that is refused. They come first (RFC 9113 8.3).
func (h *Head) forget() {
	h.Text = h.Text[:max(h.Method.To, h.Target.To, h.Authority.To, h.Protocol.To)]
	h.Fields, h.Count = nil, [syntax.Kinds]uint8{}
}

// trailers checks that none of them would have changed the message (9110 6.5.1).
func (h *Head) trailers() *Error {
	for k := syntax.Ordinary + 1; k < syntax.Kinds; k++ {
		if h.Count[k] > 0 {
			return errTrailer
		}
	}
	return nil
}

// request finds out what the fields of a request mean, once all have come. ends says that there is no body.
func (d *Decoder) request(h *Head, ends bool) *Error {
	extended := d.seen&protocol != 0
	connect := string(h.Method.Of(h.Text)) == "CONNECT"
	const both = scheme | path
	switch {
	case !token(h.Method.Of(h.Text)):
		return errMissing
	case extended && (!connect || !token(h.Protocol.Of(h.Text))):
		return errProtocol
	case connect && !extended && (d.seen&both != 0 || d.seen&authority == 0):
		return errConnectForm
	case (!connect || extended) && (d.seen&both != both || h.Target.From == h.Target.To):
		return errMissing
	}
	if !h.length(ends) {
		return errLength
	}
	switch {
	case !h.host(d.seen&authority != 0):
		h.Refused = errHost
	case connect && !extended:
		h.Refused = errConnect
	default:
		h.Refused = h.place()
	}
	h.others(ends)
	return nil
}

// response checks the fields of a response, once all have come (9113 8.3.2). Whether its content has the length that it announces
// also depends on the method of the request: that is left to the caller.
func (d *Decoder) response(h *Head, ends bool) *Error {
	switch {
	case d.seen&status == 0:
		return errStatus
	case h.Status == 101:
		return errSwitching
	case h.Status < 200 && ends:
		return errInterim
	case !h.length(false):
		return errLength
	}
	return nil
}

// length reads Content-Length, and reports whether it is valid (9110 8.6, 9113 8.1.1).
func (h *Head) length(ends bool) bool {
	switch h.Count[syntax.ContentLength] {
	case 0:
		return true
	case 1:
		value := h.first(syntax.ContentLength).Of(h.Text)
		n, err := strconv.ParseInt(string(value), 10, 64)
		h.Length = n
		return err == nil && syntax.Digit.Only(value) && (n == 0 || !ends) // ParseInt takes a sign
	}
	return false
}

// host finds the authority, which comes as :authority, as Host, or as both if they agree, and reports whether it is valid
// (9113 8.3.1). That of an http URI is not empty (9110 4.2.1).
func (h *Head) host(named bool) bool {
	field := h.first(syntax.Host)
	switch {
	case h.Count[syntax.Host] > 1:
		return false
	case !named:
		h.Authority = field
	case h.Count[syntax.Host] == 1 && !syntax.EqualFold(field.Of(h.Text), string(h.Authority.Of(h.Text))):
		return false
	}
	host := h.Authority.Of(h.Text)
	return len(host) > 0 && host[0] != ':' && syntax.ValidHost(host)
}

// place takes the target apart: a path and perhaps a query, or "*" (9113 8.3.1).
func (h *Head) place() *syntax.Refusal {
	target := h.Target.Of(h.Text)
	switch {
	case !syntax.Target.Only(target):
		return errTarget
	case target[0] != '/' && (string(target) != "*" || string(h.Method.Of(h.Text)) != "OPTIONS"):
		return errForm
	}
	h.Path = h.Target
	h.Query = syntax.Span{From: h.Path.To, To: h.Path.To}
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		h.Path.To = h.Path.From + uint32(i)
		h.Query.From = h.Path.To + 1
	}
	return nil
}

// others reads the fields Expect and Priority.
func (h *Head) others(ends bool) {
	for i := range h.Fields {
		f := &h.Fields[i]
		switch {
		case f.Kind == syntax.Expect && !syntax.EqualFold(f.Value.Of(h.Text), "100-continue"):
			h.Refused = cmp.Or(h.Refused, errExpectation)
		case f.Kind == syntax.Expect:
			h.Continue = !ends && h.Length != 0
		case string(f.Name.Of(h.Text)) == "priority":
			h.Urgency = Urgency(f.Value.Of(h.Text), h.Urgency)
		}
	}
}

// first returns the value of the first field of a kind.
func (h *Head) first(k syntax.Kind) syntax.Span {
	for i := range h.Fields {
		if h.Fields[i].Kind == k {
			return h.Fields[i].Value
		}
	}
	return syntax.Span{}
}
