package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/daimon-go/daimon/sim/framing"
)

// visitor is the connection of a page: a client of WebSocket whose messages are texts.
type visitor struct {
	net.Conn
	web framing.WebSocket
}

// visit makes the handshake on a connection, as a page of that origin.
func visit(c net.Conn, origin string) (*visitor, error) {
	v := &visitor{c, framing.WebSocket{Conn: c, Header: "Origin: " + origin + "\r\n"}}
	return v, v.web.Open("/ws")
}

func (v *visitor) wish(w wish) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return v.web.Write(framing.Text, text)
}

// closed is the code with which the server has closed.
type closed int

func (c closed) Error() string { return fmt.Sprintf("closed with code %d", int(c)) }

// next returns the next news.
func (v *visitor) next() (n news, err error) {
	_, text, err := v.web.Read()
	if end := (*framing.Closed)(nil); errors.As(err, &end) {
		return n, closed(end.Code)
	}
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(text, &n)
}
