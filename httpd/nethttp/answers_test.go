package nethttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing/iotest"
)

const get = "GET / HTTP/1.1\nHost: a\n\n"

// write writes, and says what was wrong with it.
func (s *scene) write(w http.ResponseWriter, text string) {
	if n, err := io.WriteString(w, text); n != len(text) || err != nil {
		s.say("wrote %d of %d: %v", n, len(text), named(err))
	}
}

// handler is what a row has for an http.Handler.
type handler = func(s *scene, w http.ResponseWriter, r *http.Request)

// does returns a handler of these steps: "status 404; set A: b; write hello".
func does(text string) handler {
	return func(s *scene, w http.ResponseWriter, r *http.Request) {
		for step := range strings.SplitSeq(text, "; ") {
			what, rest, _ := strings.Cut(step, " ")
			n, _ := strconv.Atoi(rest)
			name, value, _ := strings.Cut(rest, ": ")
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
				w.Header().Set(name, value)
			case "add":
				w.Header().Add(name, value)
			case "delete":
				w.Header().Del(rest)
			case "read":
				s.read(r.Body, n)
			case "close":
				s.say("%v", r.Body.Close())
			case "abort":
				panic(http.ErrAbortHandler)
			default:
				panic("no step: " + step)
			}
		}
	}
}

// fields returns a handler that sets fields, as name and value in turn, and writes a word.
func fields(pairs ...string) handler {
	return func(s *scene, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header()[pairs[i]] = append(w.Header()[pairs[i]], pairs[i+1])
		}
		s.write(w, "hello")
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

// unswitched are the differences of a handler that says 101 and does not hijack.
var unswitched = []but{{"", "101 Switching Protocols", "500 Internal Server Error", switched}, {"", "\tUpgrade: a\n", "", switched},
	{"", "Connection: Upgrade\n", "Content-Length: 0\n", switched}}

// answers are scenes of what a handler writes. What TestRandomHandlers draws, statuses, pieces, flushes, types and trailers, has
// no rows.
func answers() []row {
	rows := []row{
		{name: "204 with fields of a body",
			handler: does("set Content-Type: text/x; set Content-Length: 5; set ETag: \"a\"; status 204")},
		{name: "304 with fields of a body",
			handler: does("set Content-Type: text/x; set Content-Length: 5; set ETag: \"a\"; status 304")},
		{name: "205", handler: does("status 205")},
		{name: "205 with a body", request: get, handler: does("status 205; write hello"),
			differs: []but{{"", "Length: 5\n\tContent-Type: text/plain; charset=utf-8\n", "Length: 0\n", "205 has no content"},
				{"", "\t\"hello\"\nlasts\n", "lasts\nhandler: wrote 0 of 5: ErrBodyNotAllowed\n", "205 has no content"}}},
		{name: "426", request: get, handler: does("set Upgrade: a/1; status 426; write hello"),
			differs: []but{{"", "Required\n", "Required\n\tConnection: upgrade\n", "and then with Connection: upgrade"}}},
		{name: "599", handler: does("status 599")},
		{name: "600", request: get, handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.panics("600", func() { w.WriteHeader(600) })
		}, differs: []but{{"", "HTTP/1.1 600 ", "HTTP/1.1 200 OK", "A status is from 100 to 599"},
			{"", "no panic", "panic", "A status is from 100 to 599"}}},
		{name: "invalid statuses", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			for _, code := range []int{-1, 0, 1, 99, 1000, 2000} {
				s.panics(fmt.Sprint(code), func() { w.WriteHeader(code) })
			}
			w.WriteHeader(403)
			s.panics("late", func() { w.WriteHeader(0) })
		}},
		{name: "an invalid status", request: get, handler: does("status 99")},

		{name: "flushed with a length", handler: does("set Content-Length: 5; flush; write he; flush; write llo")},
		{name: "more than 2 KiB", request: get, handler: does("fill 2049"),
			differs: []but{{"", chunked, "", "up to 4 KiB"},
				{"", "\tContent-T", "\tContent-Length: 2049\n\tContent-T", "up to 4 KiB"}}},
		{name: "300000 bytes", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			k, err := io.Copy(w, strings.NewReader(strings.Repeat("0123456789abcdef", 300000/16)))
			s.say("%d %v", k, err)
		},
			inline: []but{{"old lasting GET", "Connection: close", "Connection: keep-alive", whole},
				{"old lasting GET", "closed", "lasts", whole}}},
		{name: "short", request: get, handler: does("set Content-Length: 6; write hello"),
			differs: []but{{"", "", failed, "is shorter than the Content-Length"}}},
		{name: "short, flushed", request: get, handler: does("set Content-Length: 6; flush; write hello"),
			inline: []but{{"", "", failed, whole}}},
		{name: "short, large", request: get, handler: does("set Content-Length: 100001; fill 100000"),
			inline: []but{{"", "", failed, whole}}},
		{name: "a type of two writes", request: get, handler: does("write <ht; write ml>" + strings.Repeat("x", 5000))},
		{name: "exceeded", request: get, handler: does("set Content-Length: 4; write h; write ell; write o"),
			differs: []but{{"", "closed\n", "lasts\n", "If it would be longer"}}},
		{name: "exceeded, flushed", request: get, handler: does("set Content-Length: 4; flush; write hello"),
			inline: []but{{"", "", failed + "handler: wrote 0 of 5: ErrContentLength\n", whole}}},
		{name: "exceeded, then no more is taken", request: get,
			handler: does("set Content-Length: 5; flush; write he; write hello; write llo"),
			inline: []but{{"", "", failed + "handler: wrote 0 of 5: ErrContentLength\n" +
				"handler: wrote 0 of 3: ErrContentLength\n", whole}}},
		{name: "a length of HEAD", request: "HEAD / HTTP/1.1\nHost: a\n\n", handler: does("set Content-Length: 5")},
		{name: "a length too late", handler: does("status 200; set Content-Length: 3; write hello")},
		{name: "a length taken back too late",
			handler: does("set Content-Length: 5; status 200; delete Content-Length; write hello")},
		{name: "a length that is none", request: "HEAD / HTTP/1.1\nHost: a\n\n",
			handler: does("set Content-Length: a; write hello"),
			differs: []but{{"", "\tContent-Length: a\n", "", "An invalid Content-Length"},
				{"", "drawn\n", "drawn\n" + chunked, "An invalid Content-Length"}}},
		{name: "chunked", handler: does("set Transfer-Encoding: chunked; write hello")},
		{name: "chunked and a length", request: get,
			handler: does("set Transfer-Encoding: chunked; set Content-Length: 5; write hello")},
		{name: "identity", request: get, handler: does("set Transfer-Encoding: identity; write hello"),
			differs: []but{{"", "\tConnection: close\n", "", coding},
				{"", "\t\"hello\"\nclosed", chunked + "\t\"hello\"\nlasts", coding}}},
		{name: "coded", request: get, handler: does("set Transfer-Encoding: gzip; write hello"),
			differs: []but{{"", "\tTransfer-Encoding: gzip\n", "", coding}}},

		{name: "Date", request: get, handler: fields("Date", "Mon, 02 Jan 2006 15:04:05 GMT"),
			differs: []but{{"", "Mon, 02 Jan 2006 15:04:05 GMT", "drawn", "Date is the server's"}}},
		{name: "no Date", request: get,
			handler: func(s *scene, w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil },
			differs: []but{{"", "Content-Length: 0\n", "Content-Length: 0\n\tDate: drawn\n", "Date is the server's"}}},
		{name: "values in their order", handler: fields("A", "1", "B", "2", "A", "3")},
		{name: "names as they are", handler: fields("x-lower", "1", "X-UPPER", "2")},
		{name: "the ends of lines", handler: fields("A", "b\r\nC: d\ne\rf")},
		{name: "space around", handler: fields("A", " \tb c\t ")},
		{name: "beyond ASCII, in two lines", handler: fields("A", "ä\xff\nb")},
		{name: "control characters", request: get, handler: fields("A", "b\x00c\x01d\x7fe"),
			differs: []but{{"", "b\x00c\x01d\x7fe", "b c d e", "Control characters in fields"}}},
		{name: "names that are none",
			handler: fields("A b", "1", "", "2", "A:", "3", "A\nB", "4", "Ä", "5", "(a)", "6", "Good", "7")},
		{name: "long and many fields", request: get,
			handler: does("set A: " + strings.Repeat("x", 100000) + strings.Repeat("; add B: c", 1000) + "; write hello")},
		{name: "cookies", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b c", Path: "/", MaxAge: 5, HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "d", Value: "e"})
		}},
		{name: "Upgrade", request: get, handler: fields("Upgrade", "a/1"),
			differs: []but{{"", "\tUpgrade: a/1\n", "", "Upgrade is sent only with 426"}}},
		{name: "Connection: Close", request: get, handler: fields("Connection", "Close"),
			differs: []but{{"", "Connection: Close", "Connection: close", connection}, {"", "lasts", "closed", connection}}},
		{name: "Connection: keep-alive", request: get, handler: fields("Connection", "keep-alive"),
			differs: []but{{"", "\tConnection: keep-alive\n", "", connection}}},
		{name: "Connection: a", request: get, handler: fields("Connection", "a", "A", "b"),
			differs: []but{{"", "\tConnection: a\n", "", connection}}},
		{name: "Connection: close, a", request: get, handler: fields("Connection", "close, a", "A", "b"),
			differs: []but{{"", "close, a", "close", connection}, {"", "lasts", "closed", connection}}},
		{name: "changed in place after the status", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			values := []string{"1"}
			w.Header()["A"] = values
			w.WriteHeader(200)
			values[0] = "2"
		}},

		{name: "trailers with a prefix", request: get, handler: does("write hello; set Trailer:Sum: 1; add Trailer:Sum: 2"),
			differs: []but{{"", "\tContent-Length: 5\n", "", prefixed},
				{"", "\t\"hello\"\n", chunked + "\t\"hello\"\n\ttrailer Sum: 1\n\ttrailer Sum: 2\n", prefixed}}},
		{name: "trailers with a prefix, flushed", handler: does("write hello; flush; set Trailer:Sum: 1"),
			inline: []but{{"old lasting GET", "Connection: close", "Connection: keep-alive", whole},
				{"old lasting GET", "closed", "lasts", whole}}},
		{name: "trailers with a prefix, large", request: get, handler: does("fill 200000; set Trailer:Sum: 1")},
		{name: "trailers with a prefix and a length", handler: does("set Content-Length: 5; write hello; set Trailer:Sum: 1")},
		{name: "trailers that are forbidden",
			handler: does("set Trailer: Content-Length, Transfer-Encoding, Trailer, Sum; write hello; flush; " +
				"set Content-Length: 1; set Transfer-Encoding: 1; set Sum: 1")},
		{name: "trailers with the end of a line",
			handler: does("set Trailer: Sum; write hello; flush; set Sum: 1\r\n2; set Trailer:A b: 3")},

		{name: "HEAD of HTTP/1.0 that lasts", request: "HEAD / HTTP/1.0\nConnection: keep-alive\n\n", handler: does("flush; write hello")},
		{name: "100", handler: does("set Link: <0>; status 100; write hello")},
		{name: "102 and 103", handler: does("set Link: <0>; status 102; set Link: <1>; status 103; delete Link; write hello")},
		{name: "101 and a write", request: get, handler: does("set Connection: Upgrade; set Upgrade: a; status 101; write hello"),
			differs: unswitched},
		{name: "103 behind the answer", request: get, handler: does("write hello; status 103; flush; status 103")},
		{name: "101 that is none", request: get, handler: does("set Connection: Upgrade; set Upgrade: a; status 101"),
			differs: unswitched},
		{name: "103 with fields that are not of it", handler: does("set Content-Length: 5; set Transfer-Encoding: chunked; " +
			"set Content-Type: a/b; status 103; delete Transfer-Encoding; write hello")},
		{name: "103 with fields that are none", handler: does("set A b: 1; set C: d\ne; status 103")},
		{name: "Host and Expect", request: get, handler: fields("Host", "b", "Expect", "c"),
			differs: []but{{"", "\tExpect: c\n\tHost: b\n", "", "Host and Expect"}}},
		{name: "103 and close", request: get, handler: does("set Connection: close; status 103")},

		{name: "aborted", handler: does("abort")},
		{name: "aborted behind a write", request: get, handler: does("write hello; abort")},
		{name: "aborted behind a flush", request: get, handler: does("write hello; flush; abort"),
			inline: []but{{"", "", "closed\n", whole}}},
		{name: "an error of the runtime behind a flush", request: get, handler: does("write hello; flush; of the test"),
			inline: []but{{"", "", "closed\n", whole}}},

		{name: "interfaces", request: get, handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			_, flusher := w.(http.Flusher)
			_, hijacker := w.(http.Hijacker)
			_, from := w.(io.ReaderFrom)
			_, text := w.(io.StringWriter)
			_, pusher := w.(http.Pusher)
			_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
			s.say("%t %t %t %t %t %t", flusher, hijacker, from, text, pusher, unwraps)
			s.say("%v", http.NewResponseController(w).EnableFullDuplex())
		}},
		{name: "deadlines", request: get, handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			flow := http.NewResponseController(w)
			s.say("%v %v", named(flow.SetReadDeadline(past)), named(flow.SetWriteDeadline(past)))
		},
			inline: []but{{"", "closed\n", "HTTP/1.1 200 OK\n\tDate: drawn\nlasts\n", unsupported},
				{"", "nil nil", "ErrNotSupported ErrNotSupported", unsupported}}},
		{name: "ReadFrom", handler: reads("<html>", 6)},
		{name: "ReadFrom of a reader that fails", handler: reads("hello", 6)},
		{name: "ReadFrom behind a write and a status", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			does("status 404; write <b>")(s, w, r)
			reads("hello", 5)(s, w, r)
			s.write(w, "</b>")
		}},
		{name: "ReadFrom of a file between writes", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			does("set Content-Length: 150010; write <html")(s, w, r)
			f, err := os.Open(os.Args[0]) // it is large
			if err != nil {
				s.say("%v", err)
				return
			}
			defer f.Close()
			for _, n := range []int64{100_000, 20_000, 20_000, 10_000} {
				part := &io.LimitedReader{R: f, N: n}
				n, err := io.Copy(w, part)
				s.say("%d %d %v", n, part.N, named(err))
			}
			s.write(w, "/html")
		}},
		{name: "ReadFrom of a whole file, without a status", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			f, err := os.CreateTemp(s.TempDir(), "")
			if err == nil {
				_, err = f.WriteString(strings.Repeat("hello", 10_000))
			}
			defer f.Close()
			_, behind := f.Seek(5, io.SeekStart)
			w.Header().Set("Content-Length", "49995")
			n, late := io.Copy(w, f)
			end, _ := f.Seek(0, io.SeekCurrent)
			s.say("%v %v: %d %v, at %d", err, behind, n, named(late), end)
		}},

		{name: "no type", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			s.write(w, "<html>")
		}},
		{name: "the type of coded content", handler: fields("Content-Encoding", "gzip")},
		{name: "the type of content with an empty coding", handler: fields("Content-Encoding", "")},
	}
	for _, lengths := range [][]string{{""}, {"abc"}, {"-5"}, {" 5"}, {"5, 5"}, {"99999999999999999999"}, {}} {
		for _, rest := range []string{"", "write hello", "flush; write hello"} {
			rows = append(rows, row{name: fmt.Sprintf("length %q; %s", lengths, rest), request: get,
				handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
					w.Header()["Content-Length"] = lengths
					does(rest)(s, w, r)
				}})
		}
	}
	for _, text := range []string{"<!doctype html>", " \n<head>", "{}", "\x89PNG\r\n\x1a\n", "\x00\x01\x02", "%PDF-1.4", "\x1f\x8b\x08",
		"GIF89a", "<?xml version", "\xef\xbb\xbftext", "ä", strings.Repeat(" ", 511) + "<html>", strings.Repeat(" ", 512) + "<html>"} {
		rows = append(rows, row{name: fmt.Sprintf("the type of %.20q", text), request: get, handler: does("write " + text)})
	}
	return rows
}

// reads returns a handler that copies up to n bytes of a reader, which has no more than text.
func reads(text string, n int64) handler {
	return func(s *scene, w http.ResponseWriter, r *http.Request) {
		from := io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("no")))
		n, err := w.(io.ReaderFrom).ReadFrom(io.LimitReader(from, n))
		s.say("%d %v", n, named(err))
	}
}
