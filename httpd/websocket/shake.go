package websocket

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// shake makes a client's connection: it connects, sends its request, and reads the answer. With status 101, conn and
// subprotocol are set then.
type shake struct {
	client      *Client
	connect     *listener.Connect // nil: it has not begun
	conn        *listener.Conn    // nil: it is not connected
	address     string
	key         string
	request     []byte // the part that is still to be sent
	parser      http1.Parser
	seen        int // bytes that parser has seen
	interim     int // answers before the one that counts
	subprotocol string
	codec       *deflate.Codec
	done        bool
}

const maxInterim = 8

// What is wrong with an answer (RFC 6455 4.1, and 9.1 for extensions).
var (
	errInterim     = errors.New("the server sends one interim response after the other")
	errEnd         = fmt.Errorf("the server has closed the connection before it has answered: %w", io.ErrUnexpectedEOF)
	errUpgrade     = errors.New("the answer has status 101, but does not switch to websocket")
	errAccept      = errors.New("the answer has no Sec-WebSocket-Accept that belongs to the request")
	errExtension   = errors.New("the server has chosen an extension that was not offered")
	errSubprotocol = errors.New("the server has chosen a subprotocol that was not offered")
)

// Act is Done when there is a connection.
func (x *shake) Act(t *act.Task) act.Directive {
	if x.connect == nil {
		if err := x.begin(t); err != nil {
			return t.Fail(err)
		}
	}
	if x.conn == nil {
		if d := x.connect.Act(t); d != act.Done {
			return d
		}
		x.conn = x.connect.Conn()
	}
	err := x.talk()
	if blocked, is := err.(act.Blocked); is {
		blocked.Arm(t)
		return act.Wait
	}
	if err != nil {
		x.conn.Abort()
		return t.Fail(err)
	}
	x.done = true
	return act.Done
}

// begin checks the Client's fields.
func (x *shake) begin(t *act.Task) error {
	v := x.client
	var host, path string
	var err error
	if x.address, host, path, err = v.target(); err != nil {
		return err
	}
	var nonce [16]byte
	masks.Get(t.Scheduler()).random(nonce[:])
	x.key = base64.StdEncoding.EncodeToString(nonce[:])
	if x.request, err = v.request(host, path, x.key); err != nil {
		return err
	}
	x.connect = &listener.Connect{Address: x.address, Limits: v.Limits, Filters: v.Filters}
	x.parser.Response = true
	return nil
}

// talk sends the request and reads the answer. Its error is an act.Blocked, or why there is no connection of WebSocket.
func (x *shake) talk() error {
	if len(x.request) > 0 {
		n, err := x.conn.Write(x.request)
		if x.request = x.request[n:]; err != nil {
			return err
		}
	}
	for {
		in, err := x.conn.Peek(x.seen + 1)
		x.seen = len(in)
		ended := false
		switch err {
		case nil:
			ended, err = x.parser.Read(in)
		case io.EOF:
			err = errEnd
		case listener.ErrTooLong:
			err = http1.ErrLargeHead
		}
		if refused := (*syntax.Refusal)(nil); errors.As(err, &refused) {
			err = fmt.Errorf("the answer is not HTTP that is understood: %s", refused.Why)
		}
		switch {
		case err != nil:
			return err
		case !ended:
			continue
		}
		switch status := x.parser.Status; {
		case status == 101:
			err := x.check(in)
			x.conn.Discard(x.parser.Length)
			return err
		case status >= 200:
			return x.refusal(in)
		}
		if x.interim++; x.interim > maxInterim {
			return errInterim
		}
		x.conn.Discard(x.parser.Length)
		x.parser.Reset()
		x.parser.Response, x.seen = true, 0
	}
}

// check checks an answer of status 101.
func (x *shake) check(in []byte) error {
	p := &x.parser
	if p.Count[syntax.Upgrade] != 1 || !syntax.EqualFold(syntax.Get(p.Fields, in, "Upgrade"), "websocket") ||
		!p.Upgrades(in, "websocket") {
		return errUpgrade
	}
	var extensions [][]byte
	accepts, subprotocols := 0, 0
	for name, value := range syntax.Each(p.Fields, in) {
		switch {
		case syntax.EqualFold(name, "Sec-WebSocket-Accept"):
			if accepts++; string(value) != accept([]byte(x.key)) {
				return errAccept
			}
		case syntax.EqualFold(name, "Sec-WebSocket-Protocol"):
			x.subprotocol = string(value)
			if subprotocols++; subprotocols > 1 || !slices.Contains(x.client.Subprotocols, x.subprotocol) {
				return errSubprotocol
			}
		case syntax.EqualFold(name, "Sec-WebSocket-Extensions"):
			extensions = append(extensions, value)
		}
	}
	if accepts != 1 {
		return errAccept
	}
	terms, on, err := deflate.Accept(slices.Values(extensions), x.client.Takeover)
	switch {
	case err != nil || on && x.client.Compress <= 0:
		return errExtension
	case on:
		x.codec = deflate.New(terms)
	}
	return nil
}

// refusal returns the error for an answer of another status.
func (x *shake) refusal(in []byte) error {
	e := &DialError{Status: int(x.parser.Status), Header: textproto.MIMEHeader{}}
	e.err = fmt.Errorf("the server has answered with status %d", e.Status)
	for name, value := range syntax.Each(x.parser.Fields, in) {
		e.Header.Add(string(name), string(value))
	}
	return e
}

// Stop passes a shutdown request on to a filter.
func (x *shake) Stop(t *act.Task, o shutdown.Order) {
	if x.connect != nil && x.conn == nil {
		x.connect.Stop(t, o)
	}
}

// Abandon leaves the function that a filter, or the lookup, has offloaded to itself.
func (x *shake) Abandon() act.Action { return x.connect.Abandon() }

// Close gives up a handshake that has not ended.
func (x *shake) Close() error {
	if x.connect == nil || x.done {
		return nil
	}
	_ = x.connect.Close() // there is nothing that it could lose
	if x.conn != nil {
		x.conn.Abort()
	}
	return nil
}
