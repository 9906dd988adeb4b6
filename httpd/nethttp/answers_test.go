package nethttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const get = "GET / HTTP/1.1\nHost: a\n\n"

// What an answer may have.
const (
	plain   = "\tContent-Type: text/plain; charset=utf-8\n"
	chunked = "\tTransfer-Encoding: chunked\n"
	failed  = "500\n\tConnection: close\n\tContent-Length: 26\n" + plain + "\t\"500 Internal Server Error\\n\"\nclosed\n"
)

// A row is a handler, which is asked in all ways, or only by GET if that makes a difference. What TestRandomHandlers draws,
// statuses, pieces, flushes, types and trailers, has no rows.
type row struct {
	name    string
	handler func(s *scene, w http.ResponseWriter, r *http.Request)
	once    bool // only by GET
	but     []but
}

// write writes, and says what was wrong with it.
func (s *scene) write(w http.ResponseWriter, text string) {
	if n, err := io.WriteString(w, text); n != len(text) || err != nil {
		s.say("wrote %d of %d: %v", n, len(text), named(err))
	}
}

// does returns a handler of these steps: "status 404; set A: b; write hello".
func does(text string) func(*scene, http.ResponseWriter, *http.Request) {
	return func(s *scene, w http.ResponseWriter, r *http.Request) {
		for step := range strings.SplitSeq(text, "; ") {
			what, rest, _ := strings.Cut(step, " ")
			n, _ := strconv.Atoi(rest)
			switch what {
			case "":
			case "write":
				s.write(w, rest)
			case "fill":
				s.write(w, strings.Repeat("<html>", n)[:n])
			case "flush":
				w.(http.Flusher).Flush()
			case "status":
				w.WriteHeader(n)
			case "set":
				name, value, _ := strings.Cut(rest, ": ")
				w.Header().Set(name, value)
			case "add":
				name, value, _ := strings.Cut(rest, ": ")
				w.Header().Add(name, value)
			case "delete":
				w.Header().Del(rest)
			case "read":
				s.read(r.Body, n)
			case "close":
				s.say("%v", r.Body.Close())
			default:
				panic("no step: " + step)
			}
		}
	}
}

// fields returns a handler that sets fields, as name and value in turn, and writes a word.
func fields(pairs ...string) func(*scene, http.ResponseWriter, *http.Request) {
	return func(s *scene, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header()[pairs[i]] = append(w.Header()[pairs[i]], pairs[i+1])
		}
		s.write(w, "hello")
	}
}

// asked are the requests that each handler of a table gets.
var asked = []struct{ name, request string }{
	{"GET", get},
	{"HEAD", "HEAD / HTTP/1.1\nHost: a\n\n"},
	{"closing GET", "GET / HTTP/1.1\nHost: a\nConnection: close\n\n"},
	{"old GET", "GET / HTTP/1.0\n\n"},
	{"old lasting GET", "GET / HTTP/1.0\nConnection: keep-alive\n\n"},
	{"POST", "POST / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"},
}

func compareAll(t *testing.T, rows []row) {
	for _, row := range rows {
		row.compare(t)
	}
}

// panics says whether f panics.
func (s *scene) panics(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.say("%s: panic", what)
		}
	}()
	f()
	s.say("%s: no panic", what)
}

func (row row) compare(t *testing.T) {
	t.Run(row.name, func(t *testing.T) {
		compare(t, func(s *scene) {
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) { row.handler(s, w, r) })
			once := row.once || len(row.but) > 0
			for i, a := range asked {
				switch {
				case i == 0 || i == len(asked)-1 && !once:
					s.ask(a.name, a.request)
				case !once:
					s.part(a.name)
					s.talk(a.request, false)
					s.curtain()
				}
			}
		}, row.but...)
	})
}

func TestStatuses(t *testing.T) {
	for _, code := range []int{205, 426, 599, 600} {
		var alone, full []but
		switch code {
		case 205:
			full = []but{{"", "\tContent-Length: 5\n" + plain + "\t\"hello\"\nlasts\n",
				"\tContent-Length: 0\nlasts\nhandler: wrote 0 of 5: ErrBodyNotAllowed\n", "205 has no content (RFC 9110 15.3.6)"}}
		case 600:
			alone = []but{{"", "", "closed\n", "it is no status (RFC 9110 15): WriteHeader panics"}}
			full = alone
		}
		compareAll(t, []row{
			{name: fmt.Sprint(code, " alone"), handler: does(fmt.Sprint("status ", code)), but: alone},
			{name: fmt.Sprint(code, " with a body"), handler: does(fmt.Sprintf("status %d; write hello", code)), but: full},
		})
	}
	for _, code := range []int{204, 304} {
		row{name: fmt.Sprint(code, " with fields of a body"),
			handler: does(fmt.Sprint("set Content-Type: text/x; set Content-Length: 5; set ETag: \"a\"; status ", code))}.compare(t)
	}
	compareAll(t, []row{
		{name: "invalid", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			for _, code := range []int{-1, 0, 1, 99, 1000, 2000} {
				s.panics(fmt.Sprint(code), func() { w.WriteHeader(code) })
			}
			w.WriteHeader(403)
			s.panics("late", func() { w.WriteHeader(0) })
		}},
		{name: "invalid and nobody recovers", handler: does("status 99")},
	})
}

func TestContent(t *testing.T) {
	rows := []row{
		{name: "flushed with a length", handler: does("set Content-Length: 5; flush; write he; flush; write llo")},
		{name: "Error", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "500")
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Etag", "x")
			http.Error(w, "it is wrong", http.StatusTeapot)
		}},
		{name: "Redirect", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "b?c=<d>", http.StatusFound)
		}},
	}
	rows = append(rows, row{name: "4096 bytes", handler: does("fill 4096"),
		but: []but{{"", "\tContent-Type: text/html; charset=utf-8\n" + chunked,
			"\tContent-Length: 4096\n\tContent-Type: text/html; charset=utf-8\n", "as much is gathered; net/http gathers 2 KiB"}}})
	rows = append(rows, row{name: "300000 bytes copied", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
		k, err := io.Copy(w, strings.NewReader(strings.Repeat("0123456789abcdef", 300000/16)))
		s.say("%d %v", k, err)
	}})
	compareAll(t, rows)
}

func TestTypes(t *testing.T) {
	rows := []row{
		{name: "nil", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			s.write(w, "<html>")
		}},
		{name: "not of coded content", handler: fields("Content-Encoding", "gzip")},
		{name: "of content with an empty coding", handler: fields("Content-Encoding", "")},
	}
	for _, text := range []string{"<!doctype html>", " \n<head>", "{}", "\x89PNG\r\n\x1a\n", "\x00\x01\x02", "%PDF-1.4", "\x1f\x8b\x08", "GIF89a",
		"<?xml version", "\xef\xbb\xbftext", "ä", strings.Repeat(" ", 511) + "<html>", strings.Repeat(" ", 512) + "<html>"} {
		rows = append(rows, row{name: fmt.Sprintf("of %.20q", text), handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, text)
		}})
	}
	compareAll(t, rows)
}

func TestLengths(t *testing.T) {
	set := func(lengths []string, flush bool, writes ...string) func(*scene, http.ResponseWriter, *http.Request) {
		return func(s *scene, w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Length"] = lengths
			if flush {
				w.(http.Flusher).Flush()
			}
			for _, text := range writes {
				s.write(w, text)
			}
		}
	}
	var rows []row
	for _, lengths := range [][]string{{""}, {"abc"}, {"-5"}, {" 5"}, {"5, 5"}, {"99999999999999999999"}, {}} {
		// Where there are no chunks, net/http sends them as they are.
		rows = append(rows,
			row{name: fmt.Sprintf("%q", lengths), handler: set(lengths, false, "hello"), once: true},
			row{name: fmt.Sprintf("%q, flushed", lengths), handler: set(lengths, true, "hello"), once: true},
			row{name: fmt.Sprintf("%q and no content", lengths), handler: set(lengths, false), once: true},
		)
	}
	short := []but{{"", "", failed, "the client gets no answer that is not whole"}}
	lasts := []but{{"", "closed\n", "lasts\n", "the answer is whole"}}
	compareAll(t, append(rows, []row{
		{name: "exact, flushed", handler: set([]string{"5"}, true, "h", "ello")},
		{name: "short", handler: set([]string{"6"}, false, "hello"), but: short},
		{name: "short, flushed", handler: set([]string{"6"}, true, "hello")},
		{name: "exceeded", handler: set([]string{"4"}, false, "h", "ell", "o"), but: lasts},
		{name: "exceeded, flushed", handler: set([]string{"4"}, true, "hello")},
		{name: "exceeded, then no more is taken", handler: set([]string{"5"}, true, "he", "hello", "llo")},
		{name: "too late", handler: does("status 200; set Content-Length: 3; write hello")},
		{name: "taken back too late", handler: does("set Content-Length: 5; status 200; delete Content-Length; write hello")},
	}...))
}

func TestCodings(t *testing.T) {
	const framing = "the framing is the server's"
	compareAll(t, []row{
		{name: "chunked", handler: fields("Transfer-Encoding", "chunked")},
		{name: "chunked and a length", handler: fields("Transfer-Encoding", "chunked", "Content-Length", "5"), once: true},
		{name: "identity", handler: fields("Transfer-Encoding", "identity"),
			but: []but{{"", "\tConnection: close\n\t\"hello\"\nclosed", chunked + "\t\"hello\"\nlasts", framing}}},
		{name: "gzip", handler: fields("Transfer-Encoding", "gzip"), but: []but{{"", "\tTransfer-Encoding: gzip\n", "", framing}}},
	})
}
