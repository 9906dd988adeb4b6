package websocket_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

// outcome is how an action of a client has ended.
type outcome struct {
	act.Child
	over bool
	err  error
}

func (o *outcome) Act(t *act.Task) act.Directive {
	d := o.Child.Act(t)
	if d.Finished() {
		o.over = true
		if d == act.Failed {
			o.err = t.Err()
		}
		return act.Done
	}
	return d
}

// serve returns the server of a connection that v has made, after it has read the request.
func (w *world) serve(v *websocket.Client, limits listener.Limits) (c *client, request string, o *outcome) {
	w.T.Helper()
	conn, peer := w.Conn("tcp", limits)
	o = &outcome{}
	o.Action = v.DialOn(conn)
	w.S.Spawn(o)
	c = &client{server{peer.(*net.TCPConn)}, w}
	return c, c.until("\r\n\r\n"), o
}

// answer is what a server answers to a request.
func answer(request string) string {
	_, key, _ := strings.Cut(request, "Sec-WebSocket-Key: ")
	key, _, _ = strings.Cut(key, "\r\n")
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
}

// open is serve, with the answer.
func (w *world) open(v *websocket.Client, limits listener.Limits) (*client, *outcome) {
	w.T.Helper()
	c, request, o := w.serve(v, limits)
	c.send(answer(request))
	require.False(w.T, o.over, "%v", o.err)
	return c, o
}

// alone makes a handler of a client out of one of a server.
func alone(f func(*websocket.Conn, *httpd.Request) act.Action) func(*websocket.Conn) act.Action {
	return func(c *websocket.Conn) act.Action { return f(c, nil) }
}

// bare takes the masks from what a client says.
func bare(says string) string {
	var to []byte
	for p := []byte(says); len(p) > 0; {
		h, n, err := frame.Parse(p, true, true)
		if err != nil || n == 0 { // it is wrong, or a part of a header
			if len(p) > 1 {
				p[1] &^= 0x80
			}
			return string(append(to, p...))
		}
		payload := p[n:min(int64(len(p)), int64(n)+min(h.Length, 1<<20))]
		frame.Mask(payload, payload, h.Key, 0)
		p = p[n+len(payload):]
		h.Masked = false
		to = append(h.Append(to), payload...)
	}
	return string(to)
}

func TestAddressesOfAClient(t *testing.T) {
	for _, row := range []struct{ url, address, line, host string }{
		{"ws://a.example", "a.example:80", "/", "a.example"},
		{"ws://a.example:8080/b/c?d=e%20f", "a.example:8080", "/b/c?d=e%20f", "a.example:8080"},
		{"WSS://a.example/?", "a.example:443", "/?", "a.example"},
		{"ws://[::1]/a", "[::1]:80", "/a", "[::1]"},
		{"ws://[fe80::1%25eth0]:81/a", "[fe80::1%eth0]:81", "/a", "[fe80::1]:81"},
		{"ws://a.example/ä b?ö", "a.example:80", "/%C3%A4%20b?%C3%B6", "a.example"},
	} {
		w := newWorld(t)
		v := &websocket.Client{URL: row.url, Handler: alone(waits().handler),
			Filters: []listener.Filter{func(*listener.Conn) act.Action { return nil }}}
		c, request, o := w.serve(v, listener.Limits{})
		require.True(t, strings.HasPrefix(request, "GET "+row.line+" HTTP/1.1\r\nHost: "+row.host+"\r\n"), request)
		c.send("HTTP/1.1 204\r\n\r\n")
		w.Until("the end", func() bool { return o.over })
		require.EqualError(t, o.err, "websocket: no connection to "+row.address+": the server has answered with status 204")
	}
}

func TestTheRequestOfAClient(t *testing.T) {
	w := newWorld(t)
	v := &websocket.Client{URL: "ws://a/b", Handler: alone(waits().handler), Options: websocket.Options{Subprotocols: []string{"chat.v2", "chat.v1"}},
		Header: map[string][]string{"Origin": {"https://a"}, "Cookie": {"b=c", "d=e"}, "host": {"b.example"}}}
	_, request, _ := w.serve(v, listener.Limits{})
	_, again, _ := w.serve(v, listener.Limits{})
	head, key, _ := strings.Cut(request, "Sec-WebSocket-Key: ")
	key, tail, _ := strings.Cut(key, "\r\n")
	require.Equal(t, "GET /b HTTP/1.1\r\nHost: b.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", head)
	require.Equal(t, "Sec-WebSocket-Protocol: chat.v2, chat.v1\r\nCookie: b=c\r\nCookie: d=e\r\nOrigin: https://a\r\n\r\n", tail)
	nonce, err := base64.StdEncoding.DecodeString(key)
	require.NoError(t, err)
	require.Len(t, nonce, 16)
	require.NotContains(t, again, key)
}

// What a Client says cannot be sent. Nothing is.
func TestMistakesOfAClient(t *testing.T) {
	for name, row := range map[string]struct {
		client websocket.Client
		says   string
	}{
		"http":              {websocket.Client{URL: "http://a/"}, "neither ws nor wss"},
		"no scheme":         {websocket.Client{URL: "a.example/b"}, "neither ws nor wss"},
		"no host":           {websocket.Client{URL: "ws:///b"}, "no host"},
		"only a port":       {websocket.Client{URL: "ws://:80/b"}, "no host"},
		"opaque":            {websocket.Client{URL: "ws:a"}, "no host"},
		"a fragment":        {websocket.Client{URL: "ws://a/b#c"}, "a fragment"},
		"an empty fragment": {websocket.Client{URL: "ws://a/b#"}, "a fragment"},
		"a user":            {websocket.Client{URL: "ws://me:secret@a/b"}, "a user"},
		"a space":           {websocket.Client{URL: "ws://a/?b c"}, "no URL may have"},
		"a host":            {websocket.Client{URL: "ws://ä/"}, "no URL may have"},
		"a line":            {websocket.Client{URL: "ws://a/\r\nX: y"}, "invalid control character in URL"},
		"a port":            {websocket.Client{URL: "ws://a:b/secret"}, "invalid port"},
		"wss in clear":      {websocket.Client{URL: "wss://a/"}, "without a filter that makes TLS"},
		"a bad field":       {websocket.Client{URL: "ws://a/", Header: map[string][]string{"A b": {""}}}, `"A b" of Header has a byte`},
		"a bad value":       {websocket.Client{URL: "ws://a/", Header: map[string][]string{"A": {"secret\r\nB: c"}}}, `"A" of Header has a byte`},
		"our fields":        {websocket.Client{URL: "ws://a/", Header: map[string][]string{"sec-websocket-Key": {"a"}}}, "not the caller's"},
		"a length":          {websocket.Client{URL: "ws://a/", Header: map[string][]string{"Content-length": {"1"}}}, "not the caller's"},
		"a bad host":        {websocket.Client{URL: "ws://a/", Header: map[string][]string{"Host": {"a/b"}}}, "no URL may have"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.client.Handler = alone(waits().handler)
			o := &outcome{}
			o.Action = row.client.Dial()
			w.S.Spawn(o)
			w.Until("the end", func() bool { return o.over })
			var err *websocket.DialError
			require.ErrorAs(t, o.err, &err)
			require.ErrorContains(t, err, row.says)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), " to :")
			require.Zero(t, err.Status)
		})
	}
	require.Panics(t, func() { (&websocket.Client{URL: "ws://a/"}).Dial() })
}

// RFC 6455 4.1: each answer whole, and in two pieces.
func TestAnswers(t *testing.T) {
	with := func(fields string) func(string) string {
		return func(request string) string { return strings.TrimSuffix(answer(request), "\r\n") + fields + "\r\n\r\n" }
	}
	but := func(old, new string) func(string) string {
		return func(request string) string {
			require.Contains(t, answer(request), old)
			return strings.Replace(answer(request), old, new, 1)
		}
	}
	is := func(text string) func(string) string { return func(string) string { return text } }
	for name, row := range map[string]struct {
		says   func(request string) string
		err    string // "": there is a connection
		status int
	}{
		"as it should be":        {with("Server: a"), "", 0},
		"other cases":            {but("Upgrade: websocket\r\nConnection: Upgrade", "upgrade: WebSocket\r\nCONNECTION: keep-alive, UPGRADE"), "", 0},
		"no reason":              {but(" Switching Protocols", ""), "", 0},
		"a subprotocol":          {with("Sec-WebSocket-Protocol: chat.v1"), "", 0},
		"interim responses":      {func(r string) string { return "HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 a\r\nLink: b\r\n\r\n" + answer(r) }, "", 0},
		"no Upgrade":             {but("Upgrade: websocket\r\n", ""), "does not switch", 0},
		"another protocol":       {but("Upgrade: websocket", "Upgrade: h2c"), "does not switch", 0},
		"two protocols":          {but("Upgrade: websocket", "Upgrade: websocket, a"), "does not switch", 0},
		"two Upgrades":           {with("Upgrade: websocket"), "does not switch", 0},
		"no Connection":          {but("Connection: Upgrade\r\n", ""), "does not switch", 0},
		"another Connection":     {but("Connection: Upgrade", "Connection: keep-alive"), "does not switch", 0},
		"HTTP/1.0":               {but("HTTP/1.1", "HTTP/1.0"), "does not switch", 0},
		"HTTP/2":                 {but("HTTP/1.1", "HTTP/2.0"), "a major version other than 1", 0},
		"no Accept":              {but("Sec-WebSocket-Accept", "X-Accept"), "Sec-WebSocket-Accept", 0},
		"two Accepts":            {with("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "Sec-WebSocket-Accept", 0},
		"another's Accept":       {is(answer(handshake)), "Sec-WebSocket-Accept", 0},
		"an extension":           {with("Sec-WebSocket-Extensions: x-webkit-deflate-frame"), "extension", 0},
		"no extension":           {with("Sec-WebSocket-Extensions:"), "", 0},
		"compression":            {with("Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover"), "extension", 0},
		"no extension at all":    {with("Sec-WebSocket-Extensions: ;"), "extension", 0},
		"another's subprotocol":  {with("Sec-WebSocket-Protocol: b.v2"), "subprotocol", 0},
		"two subprotocols":       {with("Sec-WebSocket-Protocol: chat.v1, b.v1"), "subprotocol", 0},
		"two lines of them":      {with("Sec-WebSocket-Protocol: chat.v1\r\nSec-WebSocket-Protocol: b.v1"), "subprotocol", 0},
		"many interim responses": {is(strings.Repeat("HTTP/1.1 100 \r\n\r\n", 9)), "interim", 0},
		"not HTTP":               {is("SSH-2.0-OpenSSH\r\n"), "not HTTP", 0},
		"TLS":                    {is("\x15\x03\x01\x00\x02\x02\x46"), "not HTTP", 0},
		"a request":              {is("GET / HTTP/1.1\r\n"), "not HTTP", 0},
		"a folded field":         {with("A: b\r\n c"), "white space", 0},
		"many fields":            {with(strings.Repeat("A: b\r\n", 100) + "C: d"), "too many fields", 0},
		"status 200":             {is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello, and more"), "status 200", 200},
		"status 301":             {is("HTTP/1.1 301 Moved\r\nLocation: ws://b/\r\nContent-Length: 0\r\n\r\n"), "status 301", 301},
		"status 401":             {is("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno"), "status 401", 401},
		"status 599":             {is("HTTP/1.1 599\r\nContent-Length: 0\r\n\r\n"), "status 599", 599},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			step := tier.Choose(23, 13, 1)
			for i := 0; i < 600; i += step {
				a := waits()
				v := &websocket.Client{URL: "ws://a/", Handler: alone(a.handler),
					Options: websocket.Options{Subprotocols: []string{"chat.v1", "b.v1"}}}
				c, request, o := w.serve(v, listener.Limits{})
				says := row.says(request)
				if i >= len(says) {
					break
				}
				servertest.Send(t, c, says[:i])
				servertest.Step(t, w.S)
				if !o.over { // an answer may be refused before its end
					c.send(says[i:])
				}
				if row.err == "" {
					w.Until("the connection", func() bool { return a.conn != nil })
					require.Equal(t, strings.Contains(says, "chat.v1"), a.conn.Subprotocol() == "chat.v1")
					c.send(bare(ping("a")))
					require.Equal(t, `pong "a"`, c.next())
					continue
				}
				w.Until("the end", func() bool { return o.over })
				var err *websocket.DialError
				require.ErrorAs(t, o.err, &err)
				require.ErrorContains(t, err, row.err)
				require.Equal(t, row.status, err.Status)
				require.Nil(t, a.conn)
				if row.status == 301 {
					require.Equal(t, "ws://b/", err.Header.Get("location"))
				}
			}
		})
	}
}

// A server stops, or says nothing any more, at any byte of its head.
func TestServersThatStop(t *testing.T) {
	w := newWorld(t)
	v := &websocket.Client{URL: "ws://a/", Handler: alone(waits().handler), DialTimeout: 3 * time.Second}
	whole := answer(handshake)
	for i := 0; i < len(whole); i += tier.Choose(11, 3, 1) {
		for want, stop := range map[error]func(c *client){
			io.ErrUnexpectedEOF:    func(c *client) { require.NoError(t, c.Conn.(server).CloseWrite()) },
			syscall.ECONNRESET:     func(c *client) { servertest.Reset(t, c.Conn.(server).TCPConn) },
			os.ErrDeadlineExceeded: func(c *client) { w.pass(3 * time.Second) },
		} {
			c, _, o := w.serve(v, listener.Limits{})
			c.send(whole[:i])
			require.False(t, o.over)
			stop(c)
			w.Until("the end", func() bool { return o.over })
			require.ErrorIs(t, o.err, want, "after %q", whole[:i])
			_ = c.Close()
		}
	}
}

// Each frame has a key of its own, which nobody can foresee (RFC 6455 5.3), also one that was prepared.
func TestMasks(t *testing.T) {
	w := newWorld(t)
	a, p := waits(), &peer{}
	v := &websocket.Client{URL: "ws://a/", Handler: alone(a.handler)}
	w.S.Spawn(v.DialOn(listener.NewConn(w.S, p, listener.Limits{})))
	p.say(w, "")
	p.say(w, answer(string(p.heard)))
	p.heard = nil
	said := websocket.Prepare(websocket.Text, []byte("abcd"))
	w.Turn(func(*act.Task) {
		for range 50 {
			require.NoError(t, a.conn.Send(websocket.Text, []byte("abcd")))
			require.NoError(t, a.conn.Push(said))
		}
	})
	keys := map[string]bool{}
	for f := range slices.Chunk(p.heard, 10) {
		keys[string(f[2:6])] = true
	}
	require.Greater(t, len(keys), 98)
}

// It is the server that closes the connection first (RFC 6455 7.1.1), if it does.
func TestAClientLetsTheServerClose(t *testing.T) {
	for name, row := range map[string]struct {
		end   func(c *client)
		waits time.Duration
	}{
		"it closes":           {func(c *client) { require.NoError(t, c.Conn.(server).CloseWrite()) }, 0},
		"it does not":         {func(c *client) { c.w.pass(5 * time.Second) }, 5 * time.Second},
		"it goes on sending":  {func(c *client) { c.send(strings.Repeat(bare(text("a")), 1000)); c.w.pass(5 * time.Second) }, 5 * time.Second},
		"it resets":           {func(c *client) { servertest.Reset(t, c.Conn.(server).TCPConn) }, 0},
		"it sends and closes": {func(c *client) { c.send("abc"); require.NoError(t, c.Conn.(server).CloseWrite()) }, 0},
	} {
		for _, first := range []bool{true, false} { // begins the close handshake
			t.Run(fmt.Sprint(name, first), func(t *testing.T) {
				w := newWorld(t)
				a := waits()
				c, o := w.open(&websocket.Client{URL: "ws://a/", Handler: alone(a.handler)}, listener.Limits{})
				if first {
					c.send(bare(bye(4000, "")))
					require.Equal(t, `close 4000 ""`, c.next())
				} else {
					w.Turn(func(*act.Task) { a.conn.Close(4000, "") })
					require.Equal(t, `close 4000 ""`, c.next())
					c.send(bare(bye(4000, "")))
				}
				before := w.now
				require.False(t, o.over)
				row.end(c)
				w.Until("the end", func() bool { return o.over })
				require.Equal(t, row.waits, w.now-before)
				require.NoError(t, o.err)
			})
		}
	}
}
