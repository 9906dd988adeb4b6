package websocket

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// shake makes a client's connection: it connects, sends its request, and reads the answer.
//
//	connect ──▶ request ──▶ head ──▶ 101: conn and subprotocol are set
//	                         │ ▲
//	                         │ └─ 100, 103 and the like
//	                         └──▶ another status ──▶ body ──▶ failed
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

	refusal *DialError // the answer has another status than 101
	framing http1.Framing
	chunks  http1.Chunks
	timer   act.Timer // for the body
}

const (
	maxInterim  = 8
	maxBody     = 1 << 10
	bodyTimeout = time.Second
)

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
	err := x.talk(t)
	if blocked, is := err.(act.Blocked); is {
		blocked.Arm(t)
		return act.Wait
	}
	x.timer.Stop()
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
func (x *shake) talk(t *act.Task) error {
	if x.refusal != nil {
		return x.body(t)
	}
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
			x.refuse(t, in)
			return x.body(t)
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
	if err := x.extensions(in); err != nil {
		return err
	}
	accepts, subprotocols := 0, 0
	for i := range p.Fields {
		name, value := p.Fields[i].Name.Of(in), p.Fields[i].Value.Of(in)
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
		}
	}
	if accepts != 1 {
		return errAccept
	}
	return nil
}

// extensions checks the extensions that the server has agreed to.
func (x *shake) extensions(in []byte) error {
	o := &x.client.Compression
	terms, on, err := deflate.Accept(func(yield func([]byte) bool) {
		for i := range x.parser.Fields {
			f := &x.parser.Fields[i]
			if syntax.EqualFold(f.Name.Of(in), "Sec-WebSocket-Extensions") && !yield(f.Value.Of(in)) {
				return
			}
		}
	}, o.Takeover)
	switch {
	case err != nil || on && !o.On:
		return errExtension
	case on:
		x.codec = deflate.New(terms)
	}
	return nil
}

// refuse notes an answer of another status.
func (x *shake) refuse(t *act.Task, in []byte) {
	p := &x.parser
	status := int(p.Status)
	x.refusal = &DialError{Address: x.address, Status: status, Header: textproto.MIMEHeader{},
		Err: fmt.Errorf("the server has answered with status %d", status)}
	for i := range p.Fields {
		x.refusal.Header.Add(string(p.Fields[i].Name.Of(in)), string(p.Fields[i].Value.Of(in)))
	}
	var err error
	if x.framing, err = p.Framing(in); err != nil || syntax.Bodiless(status) {
		x.framing = http1.Framing{} // no body, or none that can be read
	}
	x.conn.Discard(p.Length)
	t.WakeAfter(&x.timer, bodyTimeout)
}

// body reads the beginning of the body of a refusal, which is the error in the end.
func (x *shake) body(t *act.Task) error {
	e, f := x.refusal, &x.framing
	for want := 1; len(e.Body) < maxBody && (f.Chunked || f.Length != 0) && x.timer.Armed(); {
		in, err := x.conn.Peek(want)
		if _, blocked := err.(act.Blocked); blocked {
			return err
		}
		if err != nil {
			break
		}
		data, taken := in, len(in)
		switch {
		case f.Chunked:
			var ended bool
			if taken, data, ended, err = x.chunks.Next(in); ended || err != nil {
				f.Chunked = false
			}
			if want = 1; taken == 0 {
				want = len(in) + 1
			}
		case f.Length > 0:
			data = in[:min(int64(len(in)), f.Length)]
			f.Length -= int64(len(data))
		}
		e.Body = append(e.Body, data[:min(len(data), maxBody-len(e.Body))]...)
		x.conn.Discard(taken)
	}
	return e
}

// failed returns the error of the whole, which was bounded in time.
func (x *shake) failed(err error) error {
	if x.refusal != nil {
		return x.refusal
	}
	return &DialError{Address: x.address, Err: err}
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
	x.timer.Stop()
	if x.connect == nil || x.done {
		return nil
	}
	_ = x.connect.Close() // there is nothing that it could lose
	if x.conn != nil {
		x.conn.Abort()
	}
	return nil
}
