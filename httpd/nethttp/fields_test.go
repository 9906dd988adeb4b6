package nethttp_test

import (
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
		{name: "Upgrade with 426", handler: does("set Upgrade: a/1; status 426; write no"),
			but: []but{{"", "426\n", "426\n\tConnection: upgrade\n", connection}}},
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
		{name: "with a prefix", handler: does("write hello; set Trailer:Sum: 1; add Trailer:Sum: 2"),
			but: []but{{"", "\tContent-Length: 5\n" + plain + "\t\"hello\"\n",
				plain + chunked + "\t\"hello\"\n\ttrailer Sum: 1\n\ttrailer Sum: 2\n", "what is set is sent"}}},
		{name: "with a prefix, flushed", handler: does("write hello; flush; set Trailer:Sum: 1")},
		{name: "with a prefix and a length", handler: does("set Content-Length: 5; write hello; set Trailer:Sum: 1")},
		{name: "forbidden", handler: does("set Trailer: Content-Length, Transfer-Encoding, Trailer, Sum; write hello; flush; " +
			"set Content-Length: 1; set Transfer-Encoding: 1; set Sum: 1")},
		{name: "with the end of a line", handler: does("set Trailer: Sum; write hello; flush; set Sum: 1\r\n2; set Trailer:A b: 3")},
	})
}

func TestInterimAnswers(t *testing.T) {
	compareAll(t, []row{
		{name: "100", handler: does("set Link: <0>; status 100; write hello")},
		{name: "101 that is none", handler: does("set Connection: Upgrade; set Upgrade: a; status 101"),
			but: []but{{"", "101\n\tConnection: Upgrade\n\tUpgrade: a\n", "500\n\tContent-Length: 0\n",
				"the connection goes on in HTTP, so nothing was switched"}}},
		{name: "with fields that are not of it", handler: does("set Content-Length: 5; set Transfer-Encoding: chunked; " +
			"set Content-Type: a/b; status 103; delete Transfer-Encoding; write hello")},
		{name: "with fields that are none", handler: does("set A b: 1; set C: d\ne; status 103")},
	})
}
