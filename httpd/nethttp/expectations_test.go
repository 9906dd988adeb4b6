package nethttp_test

import (
	"io"
	"net/http"
	"testing"
)

// A client that waits for 100 before it sends the body.
func TestExpectations(t *testing.T) {
	const come = "the body has come already (RFC 9110 10.1.1)"
	patient := func(s *scene, fields string) {
		c := s.dial()
		defer c.Close()
		c.send(post("Content-Length: 5\nExpect: 100-continue"+fields, ""))
		if a := s.hear(c, "POST"); a != nil && a.status == 100 {
			c.send("hello")
			s.hear(c, "POST")
		}
		s.curtain()
		_, _ = io.WriteString(c.Conn, again)
		s.hear(c, "GET")
	}
	eager := func(s *scene, fields string) {
		s.talk(post("Content-Length: 5\nExpect: 100-continue"+fields, "hello"), true)
	}
	for _, row := range []struct {
		row
		eager bool // the patient client would get no answer
	}{
		{row: row{name: "the body is read", handler: does("read 10; write hello"),
			but: []but{{"eager", "100\n", "", come}, {"closing", "100\n", "", come}}}},
		{row: row{name: "it is not", handler: does("write no")}},
		{row: row{name: "it is read behind the answer", handler: does("write hello; read 5")}, eager: true},
		{row: row{name: "100 by the handler, and a read", handler: does("status 100; read 10")}},
		{row: row{name: "103 and a read", handler: does("status 103; read 5"),
			but: []but{{"", "100\n", "", come}}}, eager: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) { row.handler(s, w, r) })
				s.part("patient")
				if !row.eager {
					patient(s, "")
				}
				s.part("eager")
				eager(s, "")
				s.part("closing")
				eager(s, "\nConnection: close")
			}, row.but...)
		})
	}
}
