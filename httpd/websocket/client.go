package websocket

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// Client connects to a server of WebSocket. It may be used for any number of connections and on several schedulers at a time,
// and must not be changed meanwhile.
type Client struct {
	// URL is the URL to connect to: ws://host:port/path?query, or wss://… for TLS. Without a port it is 80, or 443 with wss.
	//
	// wss needs a filter for TLS: secure.Client, with a tls.Config whose ServerName is the host. A wss URL without
	// Filters is an error, so that nothing is sent in clear by mistake.
	URL string
	// Address is the address to connect to, as in a listener.Connect: "host:port", or "unix:" and a path. If it is empty, the
	// address is taken from the URL.
	Address string
	// Header has further fields of the request, such as Origin, Authorization and Cookie, as an http.Header has them. Host
	// replaces the URL's host. Connection, Upgrade, Content-Length, Transfer-Encoding and Sec-WebSocket-* are the Client's
	// own.
	Header map[string][]string
	// Limits bound what is buffered for a connection, as in a listener.Connect. The zero Limits has defaults.
	Limits listener.Limits
	// Filters prepare a connection before the handshake of WebSocket, in this order, as in a listener.Connect: TLS, for
	// example.
	Filters []listener.Filter
	// DialTimeout bounds the time until the server has answered the handshake: the lookup of the name, the connection, the
	// filters, and the answer. 0 means 30 s, and less than 0 means no limit.
	DialTimeout time.Duration
	// Handler makes the action of a connection when the handshake has succeeded. How the connection ends with the action, and
	// what a shutdown does, is as with Server.Handler.
	Handler func(c *Conn) act.Action
	// Options bound and configure the connections, as for a Server. Their Subprotocols are offered in this order, and
	// Conn.Subprotocol returns the one that the server has chosen.
	Options
}

// DialError is the error of the action of [Client.Dial] if the connection or the handshake has failed.
type DialError struct {
	// Status is the status of the server's answer if it is not 101, for example 401. It is 0 without an answer. Redirects are
	// not followed.
	Status int
	// Header has the header fields of the answer that Status is of; nil without one.
	Header textproto.MIMEHeader

	address string // of the server; "" if the URL has none
	err     error
}

// Error returns a line with the address, if the URL has one, and the cause.
func (e *DialError) Error() string {
	if e.address == "" { // the URL is none
		return fmt.Sprintf("websocket: no connection: %v", e.err)
	}
	return fmt.Sprintf("websocket: no connection to %s: %v", e.address, e.err)
}

// Unwrap returns the cause: a *net.OpError, an error that is os.ErrDeadlineExceeded, or what is wrong with the URL or with the
// answer.
func (e *DialError) Unwrap() error { return e.err }

// Dial returns an action that connects, makes the handshake, and then runs the action of Handler, up to the end of the
// connection. It fails with a *DialError, or as the Handler's action has failed. A connection that was lost is not a failure
// by itself: Conn.Err returns how it has ended. A shutdown request does not end the attempt to connect: the Handler's action
// gets it. Each Dial makes one connection; connecting again is up to the caller.
func (v *Client) Dial() act.Action {
	if v.Handler == nil {
		panic("websocket: Client without a Handler")
	}
	return &dialled{shake: &shake{client: v}}
}

// dialled is the action of a client. Its Child is at first what makes the connection, and then the session.
type dialled struct {
	act.Child
	shake *shake         // nil: the handshake has been made
	conn  *listener.Conn // of the session
}

func (x *dialled) Act(t *act.Task) act.Directive {
	if x.shake == nil {
		return x.Child.Act(t)
	}
	if x.Action == nil {
		x.Action = x.shake
		if limit := timeout.Or(x.shake.client.DialTimeout, dialTimeout); limit != timeout.Never {
			x.Action = listener.Within(limit, x.shake)
		}
	}
	switch d := x.Child.Act(t); d {
	case act.Done:
		_ = x.Child.Close() // its Directive is known
	case act.Failed:
		failed := &DialError{}
		if !errors.As(t.Err(), &failed) {
			failed.err = t.Err()
		}
		failed.address = x.shake.address
		return t.Fail(failed)
	default:
		return d
	}
	v := x.shake.client
	x.conn = x.shake.conn
	c := Conn{options: &v.Options, conn: x.conn, subprotocol: x.shake.subprotocol, codec: x.shake.codec, client: true}
	s := newSession(c, v.Handler)
	x.Child, x.shake = act.Child{Action: s}, nil
	return x.Child.Act(t)
}

// Close aborts a connection that the session has not closed.
func (x *dialled) Close() error {
	err := x.Child.Close()
	x.abort()
	return err
}

// Abandon aborts the connection: an offloaded function does not use it.
func (x *dialled) Abandon() act.Action {
	rest := x.Child.Abandon()
	x.abort()
	return rest
}

func (x *dialled) abort() {
	if x.conn != nil {
		x.conn.Abort() // which does nothing after Close
	}
}

// Stop passes a shutdown request on. One that comes before the first turn is found later.
func (x *dialled) Stop(t *act.Task, o shutdown.Order) {
	if x.Action != nil {
		x.Child.Stop(t, o)
	}
}

// String names the action of the user, once there is a connection. Before that it has of the URL only where it leads: the
// rest may have secrets.
func (x *dialled) String() string {
	if x.shake == nil {
		return x.Child.String()
	}
	address, _, _, _ := x.shake.client.target()
	return "websocket: dial " + cmp.Or(address, "(no address)")
}

const dialTimeout = 30 * time.Second

var (
	errScheme   = errors.New("the scheme of the URL is neither ws nor wss")
	errURL      = errors.New("the URL has no host, a user, a fragment, or bytes that no URL may have")
	errNoFilter = errors.New("wss without a filter that makes TLS")
)

// target returns where to connect to, and what to ask for there.
func (v *Client) target() (address, host, path string, err error) {
	u, err := url.Parse(v.URL)
	if err != nil {
		return v.Address, "", "", errors.Unwrap(err) // what it says else is the URL, which may have secrets
	}
	port := "80"
	if u.Scheme == "wss" {
		port = "443"
	}
	if address = v.Address; address == "" && u.Hostname() != "" {
		address = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	}
	host, path = u.Host, u.RequestURI()
	if zone := strings.IndexByte(host, '%'); zone >= 0 && strings.HasPrefix(host, "[") { // it is of this machine alone (RFC 6874 4)
		host = host[:zone] + host[strings.LastIndexByte(host, ']'):]
	}
	switch {
	case u.Scheme != "ws" && u.Scheme != "wss":
		err = errScheme
	case u.Hostname() == "" || u.User != nil || strings.Contains(v.URL, "#"), // RFC 6455 3
		!syntax.ValidHost([]byte(host)) || !syntax.Target.Only([]byte(path)):
		err = errURL
	case u.Scheme == "wss" && len(v.Filters) == 0:
		err = errNoFilter
	}
	return address, host, path, err
}

// request returns the request of the handshake (RFC 6455 4.1).
func (v *Client) request(host, path, key string) ([]byte, error) {
	var fields []byte
	for _, name := range slices.Sorted(maps.Keys(v.Header)) { // in some order that is always the same
		for _, value := range v.Header[name] {
			switch lower := strings.ToLower(name); {
			case !syntax.ValidField(name, value):
				return nil, fmt.Errorf("the field %q of Header has a byte that none may have", name)
			case slices.Contains(reserved, lower), strings.HasPrefix(lower, "sec-websocket-"):
				return nil, fmt.Errorf("the field %q of Header is not the caller's to set", name)
			case lower != "host":
				fields = fmt.Appendf(fields, "%s: %s\r\n", name, value)
			case !syntax.ValidHost([]byte(value)):
				return nil, errURL
			default:
				host = value
			}
		}
	}
	to := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", syntax.Escape([]byte(path)), host, key)
	if len(v.Subprotocols) > 0 {
		to = fmt.Appendf(to, "Sec-WebSocket-Protocol: %s\r\n", strings.Join(v.Subprotocols, ", "))
	}
	if v.Compress > 0 {
		to = fmt.Appendf(to, "Sec-WebSocket-Extensions: %s\r\n", deflate.Offer(v.Takeover))
	}
	return append(append(to, fields...), "\r\n"...), nil
}

// reserved are fields of the handshake, or that would change where it ends.
var reserved = []string{"connection", "upgrade", "content-length", "transfer-encoding", "trailer", "te", "expect"}
