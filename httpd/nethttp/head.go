package nethttp

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// head is what an answer says before its content, as the scheduler's thread gives it to httpd.
type head struct {
	status   int
	length   int64 // of the content, -1: the handler has not said it
	fields   []field
	trailers []string // names
	close    bool
	untyped  bool // the type of the content is to be found out
	chunks   bool // without a length it is sent in chunks: there may be trailers, or the handler has set other framing
}

type field struct{ name, value string }

// newHead makes the head of an answer of unknown length.
func newHead(header http.Header, status int) head {
	all, trailers := sendable(header)
	h := head{status: status, length: -1, fields: all[:0]}
	_, typed := header["Content-Type"]
	h.chunks = header.Get("Transfer-Encoding") != ""
	h.untyped = !typed && header.Get("Content-Encoding") == "" && !h.chunks
	_, sized := header["Content-Length"]
	_, announces := header["Trailer"]
	h.chunks = h.chunks || sized || announces || trailers
	for name := range elements(header["Trailer"]) {
		if name = http.CanonicalHeaderKey(name); isTrailer(name) {
			h.trailers = append(h.trailers, name)
		}
	}
	for _, f := range all {
		switch syntax.KindOf(syntax.Bytes(f.name)) {
		case syntax.Connection:
			h.close = h.close || lists([]string{f.value}, "close")
		case syntax.Upgrade:
			if status == http.StatusUpgradeRequired {
				h.fields = append(h.fields, f)
			}
		case syntax.Ordinary:
			if status != http.StatusNotModified || f.name != "Content-Type" {
				h.fields = append(h.fields, f)
			}
		}
	}
	return h
}

// sniff adds the type of a content that begins with p and goes on with next, unless there is one or it was asked before.
func (h *head) sniff(p, next []byte) {
	switch {
	case !h.untyped:
		return
	case len(p) == 0:
		p = next
	case len(p) < sniffed:
		p = append(p[:len(p):len(p)], next[:min(len(next), sniffed-len(p))]...)
	}
	h.untyped = false
	if len(p) > 0 {
		h.fields = append(h.fields, field{"Content-Type", http.DetectContentType(p)})
	}
}

// sniffed is how much of a content http.DetectContentType looks at.
const sniffed = 512

// apply gives the head to w.
func (h *head) apply(w *httpd.Response) {
	w.SetStatus(h.status)
	for _, f := range h.fields {
		w.Add(f.name, f.value)
	}
	if h.length >= 0 {
		w.SetLength(h.length)
	}
	if h.close {
		w.CloseAfter()
	}
}

// last gives the head to w, if no content was sent before the handler returned.
func (h *head) last(w *httpd.Response, mute bool) {
	h.apply(w)
	if h.length < 0 && (mute || h.chunks) {
		_ = w.Flush() // otherwise the length would be that of what follows at once
	}
}

// inform sends an interim response with the fields.
func (h *head) inform(w *httpd.Response) error {
	fields := make([]httpd.Field, 0, len(h.fields))
	for _, f := range h.fields {
		if f.name != "Upgrade" {
			fields = append(fields, httpd.NewField(f.name, f.value))
		}
	}
	return w.Inform(h.status, fields...)
}

// switching returns the head of an answer with status 101, which is not for httpd: it goes out on a hijacked connection.
func switching(header http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = header.Write(&b) // a Buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

// sendable returns the fields of a header that can be sent, in the order of their names, and whether there are trailers with
// http.TrailerPrefix beside them. As with net/http, invalid names are left out, and line breaks in values become spaces.
func sendable(header http.Header) (all []field, trailers bool) {
	all = make([]field, 0, len(header)+1) // and a type
	for name, values := range header {
		if name == "Date" || !syntax.ValidField(name, "") {
			trailers = trailers || strings.HasPrefix(name, http.TrailerPrefix)
			continue
		}
		for _, v := range values {
			all = append(all, field{name, printable(v)})
		}
	}
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b field) int { return strings.Compare(a.name, b.name) })
	}
	return all, trailers
}

// printable returns a value without control characters and without space at its ends (RFC 9110 5.5).
func printable(v string) string {
	if i := syntax.Control(syntax.Bytes(v), 0); i < len(v) {
		p := []byte(v)
		for ; i < len(p); i = syntax.Control(p, i+1) {
			p[i] = ' '
		}
		v = string(p)
	}
	return strings.Trim(v, " \t")
}

// trailersOf returns the trailers that a handler has set: fields with these names, and fields whose names begin
// with http.TrailerPrefix.
func trailersOf(header http.Header, names []string) []field {
	var trailers http.Header
	for _, name := range names {
		trailers = with(trailers, name, header[name])
	}
	for name, values := range header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && isTrailer(name) {
			trailers = with(trailers, name, values)
		}
	}
	if trailers == nil {
		return nil
	}
	all, _ := sendable(trailers)
	return all
}

// with adds a field to a header, which it makes if there is none.
func with(header http.Header, name string, values []string) http.Header {
	if header == nil {
		header = http.Header{}
	}
	header[name] = values
	return header
}
