package websocket

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/listener"
)

// Server makes connections of WebSocket out of requests: its Serve is a handler of package httpd. It may serve any number
// of servers and schedulers at a time, and must not be changed meanwhile.
type Server struct {
	// Handler makes the action of a connection, when the handshake has been answered. r is valid only during the call. If
	// the action is done, or nil, the connection is closed with code 1000, and if it fails, with 1011. A panic cuts the
	// connection off without a close frame. If the connection ends first, the action has one more turn. If it still waits
	// after that, it is closed, like the action of a handler of httpd.
	//
	// A shutdown request reaches the action. After one further turn of the action, in which it may still send, the
	// connection is closed with code 1001; with a Spread (see shutdown.Policy) it goes on for a while before.
	Handler func(c *Conn, r *httpd.Request) act.Action
	// Origin reports whether pages of the request's origin may connect; others get status 403. If it is nil, pages of the
	// same host and port may, and clients that send no Origin, which are not browsers. A port that is not written is 80 for
	// an origin of http, and 443 for one of https.
	Origin func(r *httpd.Request) bool
	Options
}

// Serve answers a handshake (RFC 6455 4.2, and over HTTP/2 RFC 8441 5). A request that is not a handshake, or is one of another
// version of the protocol, gets status 426. A method other than GET gets 405, and a handshake that is malformed or incomplete
// gets 400.
func (v *Server) Serve(w *httpd.Response, r *httpd.Request) act.Action {
	if v.Handler == nil {
		panic("websocket: Server without a Handler")
	}
	key, keys := last(r, "Sec-WebSocket-Key")
	nonce, err := base64.StdEncoding.AppendDecode(nil, key)
	version, versions := last(r, "Sec-WebSocket-Version")
	plain := r.Proto() == "HTTP/2.0" // there is no key (RFC 8441 5)
	switch {
	case string(r.Method()) != "GET":
		return refuse(w, 405, "Allow", "GET")
	case string(version) != "13" || versions != 1:
		return refuse(w, 426, understood...)
	case !plain && (keys != 1 || err != nil || len(nonce) != 16):
		return refuse(w, 400)
	case !v.mayConnect(r):
		return refuse(w, 403)
	}
	terms, extensions, err := deflate.Answer(r.Values("Sec-WebSocket-Extensions"), v.Takeover)
	if err != nil {
		return refuse(w, 400)
	}
	var codec *deflate.Codec
	if v.Compress > 0 && extensions != "" {
		codec = deflate.New(terms)
	}
	subprotocol := v.choose(r)
	err = w.SwitchProtocols("websocket", func(c *listener.Conn) act.Action {
		conn := Conn{options: &v.Options, conn: c, subprotocol: subprotocol, codec: codec}
		return newSession(conn, func(c *Conn) act.Action { return v.Handler(c, r) })
	})
	switch {
	case err == httpd.ErrNoUpgrade:
		return refuse(w, 426, understood...)
	case err != nil: // it has a body
		return refuse(w, 400)
	}
	if !plain {
		w.Add("Sec-WebSocket-Accept", accept(key))
	}
	if subprotocol != "" {
		w.Add("Sec-WebSocket-Protocol", subprotocol)
	}
	if codec != nil {
		w.Add("Sec-WebSocket-Extensions", extensions)
	}
	return nil
}

// last returns the value of the last field of a name, and how many there are.
func last(r *httpd.Request, name string) (value []byte, n int) {
	for value = range r.Values(name) {
		n++
	}
	return value, n
}

// understood says what would be understood (RFC 6455 4.4).
var understood = []string{"Upgrade", "websocket", "Sec-WebSocket-Version", "13"}

// refuse answers with a status, and fields as name and value in turn.
func refuse(w *httpd.Response, status int, fields ...string) act.Action {
	w.StatusOnly(status)
	for pair := range slices.Chunk(fields, 2) {
		w.Add(pair[0], pair[1])
	}
	return nil
}

// accept returns the answer to a key (RFC 6455 4.2.2).
func accept(key []byte) string {
	var space [60]byte
	sum := sha1.Sum(append(append(space[:0], key...), "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"...))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (v *Server) mayConnect(r *httpd.Request) bool {
	if v.Origin != nil {
		return v.Origin(r)
	}
	origin, n := last(r, "Origin")
	return n == 0 || n == 1 && sameHost(string(origin), string(r.Host()))
}

// sameHost reports whether an origin (RFC 6454 6.2), which is not an opaque one, has the given host and port. A port that is
// not written is that of the origin's scheme: the request does not say whether there was TLS somewhere before.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() == "" || !strings.EqualFold(origin, u.Scheme+"://"+u.Host) {
		return false
	}
	ours, standard := url.URL{Host: host}, map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return strings.EqualFold(u.Hostname(), ours.Hostname()) && cmp.Or(u.Port(), standard) == cmp.Or(ours.Port(), standard)
}

func (v *Server) choose(r *httpd.Request) string {
	for list := range r.Values("Sec-WebSocket-Protocol") {
		for name := range bytes.SplitSeq(list, []byte(",")) {
			if i := slices.Index(v.Subprotocols, strings.Trim(string(name), " \t")); i >= 0 {
				return v.Subprotocols[i]
			}
		}
	}
	return ""
}
