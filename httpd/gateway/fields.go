package gateway

import (
	"bytes"
	"iter"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/secure"
)

// translate makes the head of the call from that of the request: without the fields that concern the client's connection (RFC 9110
// 7.6.1), and with the ones that say where it comes from.
func (f *forward) translate(c *client.Call) {
	r := f.r
	f.text = append(f.text[:0], r.Method()...)
	method := len(f.text)
	if f.text = append(f.text, r.Path()...); bytes.IndexByte(r.Target(), '?') >= 0 {
		f.text = append(append(f.text, '?'), r.Query()...)
	}
	target := len(f.text)
	f.text = append(f.text, r.Host()...)
	c.Method = syntax.String(f.text[:method])
	c.Target = syntax.String(f.text[method:target])
	if c.Host = f.back.origin.Host; c.Host == "" {
		c.Host = syntax.String(f.text[target:])
	}
	named := options(r.Fields())
	trust := f.route.table.config.Trust
	for name, value := range r.Fields() {
		switch {
		case hop(name, named), !trust && forwarding(name):
		case syntax.EqualFold(name, "te"):
			if syntax.EqualFold(value, "trailers") {
				c.Add("TE", "trailers")
			}
		default:
			c.Add(syntax.String(name), syntax.String(value))
		}
	}
	if r.Header("Sec-WebSocket-Version") != nil && r.Header("Sec-WebSocket-Key") == nil {
		c.Add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==") // of RFC 6455 1.3: it need not be secret
	}
	f.identify(c)
}

// identify adds who the client is, after what proxies before this one have said, if they are trusted. Several fields of a name are one
// list (RFC 9110 5.3).
func (f *forward) identify(c *client.Call) {
	r := f.r
	var memory [96]byte
	proto := "http"
	if _, is := secure.State(r.Conn()); is {
		proto = "https"
	}
	from := facts.AddrPort(r.RemoteAddr()).Addr()
	ip := memory[:0]
	if from.IsValid() {
		ip = from.AppendTo(ip)
	} else {
		ip = append(ip, "unknown"...) // RFC 7239 6.2
	}
	c.Add("X-Forwarded-For", syntax.String(ip))
	if !f.route.table.config.Trust || r.Header("X-Forwarded-Proto") == nil {
		c.Add("X-Forwarded-Proto", proto)
	}
	if host := r.Host(); len(host) > 0 && (!f.route.table.config.Trust || r.Header("X-Forwarded-Host") == nil) {
		c.Add("X-Forwarded-Host", syntax.String(host))
	}
	if f.route.table.config.Forwarded {
		to := append(memory[len(ip):len(ip)], "for="...)
		if from.Is6() {
			to = append(append(append(to, `"[`...), ip...), `]"`...)
		} else {
			to = append(to, ip...)
		}
		to = append(append(to, ";proto="...), proto...)
		c.Add("Forwarded", syntax.String(to))
	}
	via := append(memory[:0], r.Proto()[len("HTTP/"):]...)
	c.Add("Via", syntax.String(append(append(via, ' '), f.route.table.config.Name...)))
}

// forwarding reports whether a field says where a request comes from.
func forwarding(name []byte) bool {
	const prefix = "x-forwarded-"
	switch name[0] | 0x20 {
	case 'f':
		return syntax.EqualFold(name, "forwarded")
	case 'x':
		return len(name) > len(prefix) && syntax.EqualFold(name[:len(prefix)], prefix)
	}
	return false
}

// hop reports whether a field concerns one connection alone, or is set by the call or the answer itself. named has the fields that
// Connection names.
func hop(name []byte, named [][]byte) bool {
	if syntax.KindOf(name) != syntax.Ordinary {
		return true
	}
	switch len(name) {
	case len("keep-alive"), len("proxy-connection"):
		if syntax.EqualFold(name, "keep-alive") || syntax.EqualFold(name, "proxy-connection") {
			return true
		}
	}
	for _, n := range named {
		if syntax.EqualFold(name, syntax.String(n)) {
			return true
		}
	}
	return false
}

// options returns the fields that Connection names, beyond the usual options. TE is looked at by itself.
func options(fields iter.Seq2[[]byte, []byte]) (named [][]byte) {
	for name, value := range fields {
		if syntax.KindOf(name) != syntax.Connection {
			continue
		}
		for option := range bytes.SplitSeq(value, []byte{','}) {
			option = bytes.Trim(option, syntax.Blank)
			switch {
			case syntax.EqualFold(option, "close"), syntax.EqualFold(option, "keep-alive"), syntax.EqualFold(option, "upgrade"),
				syntax.EqualFold(option, "te"):
			default:
				named = append(named, option)
			}
		}
	}
	return named
}

// passes reports whether a field of an answer is for the client. The server dates answers itself.
func passes(name []byte, named [][]byte) bool {
	return !hop(name, named) && !syntax.EqualFold(name, "date")
}

// copyFields adds the fields of an answer to the answer for the client, without the fields of one name.
func copyFields(w *httpd.Response, a *client.Response, without string) {
	named := options(a.Fields())
	for name, value := range a.Fields() {
		if passes(name, named) && !syntax.EqualFold(name, without) {
			w.Add(syntax.String(name), syntax.String(value))
		}
	}
}

func copyTrailers(w *httpd.Response, a *client.Response) {
	for name, value := range a.Trailers() {
		w.AddTrailer(syntax.String(name), syntax.String(value))
	}
}

// trailers returns the trailers of a request, as client.Call.End wants them.
func trailers(r *httpd.Request) (all []string) {
	for name, value := range r.Body.Trailers() {
		all = append(all, string(name), string(value))
	}
	return all
}
