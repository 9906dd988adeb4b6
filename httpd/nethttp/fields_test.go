package nethttp_test

import (
	"fmt"
	"net/http"
	"testing"
)

func TestFields(t *testing.T) {
	const connection = "the connection is the server's"
	compareAll(t, []row{
		{name: "Date", handler: fields("Date", "Mon, 02 Jan 2006 15:04:05 GMT")}, // it is always the server's
		{name: "values in their order", handler: fields("A", "1", "B", "2", "A", "3")},
		{name: "names as they are", handler: fields("x-lower", "1", "X-UPPER", "2")},
		{name: "the ends of lines", handler: fields("A", "b\r\nC: d\ne\rf")},
		{name: "space around", handler: fields("A", " \tb c\t ")},
		{name: "beyond ASCII, in two lines", handler: fields("A", "ä\xff\nb")},
		{name: "control characters", handler: fields("A", "b\x00c\x01d\x7fe"),
			but: []but{{"", "A: b\x00c\x01d\x7fe", "A: b c d e", "they are no part of values (RFC 9110 5.5)"}}},
		{name: "names that are none",
			handler: fields("A b", "1", "", "2", "A:", "3", "A\nB", "4", "Ä", "5", "(a)", "6", "Good", "7")},
		{name: "Upgrade", handler: fields("Upgrade", "a/1"), but: []but{{"", "\tUpgrade: a/1\n", "", connection}}},
		{name: "Connection: Close", handler: fields("Connection", "Close"),
			but: []but{{"", "Connection: Close", "Connection: close", connection}, {"", "lasts", "closed", connection}}},
		{name: "Connection: keep-alive", handler: fields("Connection", "keep-alive"),
			but: []but{{"", "\tConnection: keep-alive\n", "", connection}}},
		{name: "Connection: a",
			handler: fields("Connection", "a", "A", "b"), but: []but{{"", "\tConnection: a\n", "", connection}}},
		{name: "Connection: close, a", handler: fields("Connection", "close, a", "A", "b"),
			but: []but{{"", "close, a", "close", connection}, {"", "lasts", "closed", connection}}},
		{name: "changed in place after the status", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			values := []string{"1"}
			w.Header()["A"] = values
			w.WriteHeader(200)
			values[0] = "2"
		}},
	})
}

func TestTrailers(t *testing.T) {
	compareAll(t, []row{
		{name: "with a prefix", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, "hello")
			w.Header().Set(http.TrailerPrefix+"Sum", "1")
			w.Header().Add(http.TrailerPrefix+"Sum", "2")
		}, but: []but{{"", "\tContent-Length: 5\n" + plain + "\t\"hello\"\n",
			plain + chunked + "\t\"hello\"\n\ttrailer Sum: 1\n\ttrailer Sum: 2\n", "what is set is sent"}}},
		{name: "with a prefix, flushed", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, "hello")
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"Sum", "1")
		}},
		{name: "with a prefix and a length", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			s.write(w, "hello")
			w.Header().Set(http.TrailerPrefix+"Sum", "1")
		}},
		{name: "forbidden", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Content-Length, Transfer-Encoding, Trailer, Sum")
			s.write(w, "hello")
			w.(http.Flusher).Flush()
			for _, name := range []string{"Content-Length", "Transfer-Encoding", "Sum"} {
				w.Header().Set(name, "1")
			}
		}},
		{name: "with the end of a line", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Sum")
			s.write(w, "hello")
			w.(http.Flusher).Flush()
			w.Header().Set("Sum", "1\r\n2")
			w.Header()[http.TrailerPrefix+"A b"] = []string{"3"}
		}},
	})
}

func TestInterimAnswers(t *testing.T) {
	inform := func(codes ...int) func(s *scene, w http.ResponseWriter, r *http.Request) {
		return func(s *scene, w http.ResponseWriter, r *http.Request) {
			for i, code := range codes {
				w.Header().Set("Link", fmt.Sprint("<", i, ">"))
				w.WriteHeader(code)
			}
			s.write(w, "hello")
		}
	}
	compareAll(t, []row{
		{name: "100", handler: inform(100)},
		{name: "101 that is none", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "a")
			w.WriteHeader(101)
		}, but: []but{{"", "101\n\tConnection: Upgrade\n\tUpgrade: a\n", "500\n\tContent-Length: 0\n",
			"the connection goes on in HTTP, so nothing was switched"}}},
		{name: "with fields that are not of it", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.Header().Set("Transfer-Encoding", "chunked")
			w.Header().Set("Content-Type", "a/b")
			w.WriteHeader(103)
			w.Header().Del("Transfer-Encoding")
			s.write(w, "hello")
		}},
		{name: "with fields that are none", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header()["A b"] = []string{"1"}
			w.Header()["C"] = []string{"d\ne"}
			w.WriteHeader(103)
		}},
	})
}
