package gateway

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// head reads lines up to an empty one, and joins them.
func head(in *bufio.Reader) (text string) {
	for lines := textproto.NewReader(in); ; {
		line, err := lines.ReadLine()
		if err != nil || line == "" {
			return text
		}
		if !strings.HasPrefix(line, "Date: ") {
			text += line + "\n"
		}
	}
}

const (
	asks      = "GET / HTTP/1.1\nHost: a\n"
	added     = "X-Forwarded-For: CLIENT\nX-Forwarded-Proto: http\nX-Forwarded-Host: a\nVia: 1.1 daimon\n"
	empty     = "HTTP/1.1 200 OK\nContent-Length: 0\n"
	handshake = "Connection: upgrade\n" + socket
	key       = "Sec-WebSocket-Key: x\nSec-WebSocket-Version: 13\n"
	switches  = "HTTP/1.1 101 Switching Protocols\nConnection: upgrade\n"
	socket    = "Upgrade: websocket\n"
	refused   = "HTTP/1.1 502 Bad Gateway\nContent-Length: 16\nContent-Type: text/plain; charset=utf-8\n"
)

// TestHeads has what arrives at the back end, and what at the client.
func TestHeads(t *testing.T) {
	trusting := Config{Trust: true, Forwarded: true, Name: "two"}
	for name, row := range map[string]struct {
		says, arrives string
		answer, gets  string // empty if there is none
		c             Config
		b             Backend
		front         string
	}{
		"fields that Connection names": {
			says:    asks + "Connection: close, X-A, te\nX-A: 1\nx-b: 2\nTE: trailers\nKeep-Alive: a\nProxy-Connection: a\n",
			arrives: asks + "x-b: 2\nTE: trailers\n" + added,
			answer:  "HTTP/1.1 200 OK\nConnection: X-C\nX-C: 1\nX-D: 2\nKeep-Alive: a\nContent-Length: 0\n",
			gets:    "HTTP/1.1 200 OK\nContent-Length: 0\nConnection: close\nX-D: 2\n"},
		"another TE":    {says: asks + "Connection: te\nTE: gzip\n", arrives: asks + added},
		"another name":  {says: asks, arrives: strings.Replace(asks+added, "Host: a", "Host: b:1", 1), b: Backend{Host: "b:1"}},
		"absolute form": {says: "GET http://a/x?y=%2f HTTP/1.1\nHost: b\n", arrives: "GET /x?y=%2f HTTP/1.1\nHost: a\n" + added},
		"OPTIONS *":     {says: "OPTIONS * HTTP/1.1\nHost: a\n", arrives: "OPTIONS * HTTP/1.1\nHost: a\n" + added},
		"no Host": {says: "GET / HTTP/1.0\n", gets: "HTTP/1.1 200 OK\nContent-Length: 0\nConnection: close\n",
			arrives: "GET / HTTP/1.1\nHost: 10.0.0.1\nX-Forwarded-For: CLIENT\nX-Forwarded-Proto: http\nVia: 1.0 daimon\n"},
		"fields that are not trusted": {
			says:    asks + "Forwarded: for=x\nX-Forwarded-For: x\nX-Forwarded-Proto: x\nX-Forwarded-Host: x\nVia: 1.1 x\n",
			arrives: asks + "Via: 1.1 x\n" + added},
		"fields that are trusted": {
			says: asks + "Forwarded: for=x\nX-Forwarded-For: x\nX-Forwarded-Proto: https\nX-Forwarded-Host: x\n",
			arrives: asks + "Forwarded: for=x\nX-Forwarded-For: x\nX-Forwarded-Proto: https\nX-Forwarded-Host: x\n" +
				"X-Forwarded-For: CLIENT\nForwarded: for=CLIENT;proto=http\nVia: 1.1 two\n", c: trusting},
		"IPv6": {says: asks, front: "[fd00::9]:80", c: Config{Forwarded: true}, arrives: asks + strings.Replace(added,
			"Via", "Forwarded: for=\"[CLIENT]\";proto=http\nVia", 1)},
		"PROXY":   {says: asks, arrives: "PROXY TCP4 CLIENT 10.0.0.9 PORT 80\n" + asks + added, b: Backend{Proxy: 1}},
		"content": {says: asks + "Content-Length: 0\n", arrives: asks + added},
		"HEAD, chunks": {says: "HEAD / HTTP/1.1\nHost: a\n", answer: "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n",
			gets: "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n"},
		"nothing": {says: asks, answer: "HTTP/1.1 204 No Content\nX: y\n", gets: "HTTP/1.1 204 No Content\nX: y\n"},
		"not modified": {says: asks, answer: "HTTP/1.1 304 Not Modified\nETag: a\nContent-Length: 5\n",
			gets: "HTTP/1.1 304 Not Modified\nETag: a\n"},
		"another date": {says: asks, answer: "HTTP/1.1 200 OK\ndate: x\nContent-Length: 0\n", gets: empty},
		"no protocol":  {says: asks + "Connection: upgrade\nUpgrade: h2c\n", arrives: asks + added},
		"unasked":      {says: asks, answer: switches + socket, gets: refused},
		"WebSocket": {says: asks + handshake + key, arrives: asks + key + added + handshake,
			answer: switches + socket + "Sec-WebSocket-Accept: y\nX: y\n",
			gets:   switches + "Sec-WebSocket-Accept: y\nX: y\n" + socket},
		"no WebSocket": {says: asks + handshake + key, answer: "HTTP/1.1 403 Forbidden\nContent-Length: 0\nX: y\n",
			gets: "HTTP/1.1 403 Forbidden\nContent-Length: 0\nX: y\n"},
		"two protocols": {says: asks + handshake + key, answer: "HTTP/1.1 101 X\nConnection: upgrade\nUpgrade: h2c\n",
			gets: refused},
	} {
		t.Run(name, func(t *testing.T) {
			var arrives, gets string
			f := through(t, row.c, row.b, []server{coro.Serve(func(c *coro.Conn) error {
				in := bufio.NewReader(c)
				arrives = head(in)
				_, _ = io.WriteString(c, strings.ReplaceAll(cmp.Or(row.answer, empty), "\n", "\r\n")+"\r\n")
				_, err := io.Copy(c, in) // after a handshake
				return err
			})})
			row.front = cmp.Or(row.front, front)
			if row.front != front {
				f.serve(row.front, (&httpd.Server{Handler: f.g.Serve}).Serve)
			}
			f.Client(row.front, func(c *sim.Client) error {
				in := bufio.NewReader(c)
				_, _ = io.WriteString(c, strings.ReplaceAll(row.says, "\n", "\r\n")+"\r\n")
				gets = head(in)
				if strings.Contains(gets, " 101 ") {
					echoes(t, c, in)
				}
				ip, port, err := net.SplitHostPort(c.LocalAddr().String())
				arrives = strings.ReplaceAll(strings.ReplaceAll(arrives, ip, "CLIENT"), " "+port+" ", " PORT ")
				return err
			})
			require.NoError(t, f.World.Run())
			if row.arrives != "" {
				require.Equal(t, row.arrives, arrives)
			}
			require.Equal(t, cmp.Or(row.gets, empty), gets)
		})
	}
}

func echoes(t *testing.T, c *sim.Client, in io.Reader) {
	for range 3 {
		_, _ = io.WriteString(c, "hello")
		got := make([]byte, 5)
		_, err := io.ReadFull(in, got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
	}
}

// TestWebSocketOfHTTP2: the back end gets a handshake of HTTP/1.1 with a key, and the client an answer without Accept (RFC 8441
// 5). A client that resets the stream ends the connection of the back end.
func TestWebSocketOfHTTP2(t *testing.T) {
	ended := false
	f := through(t, Config{}, Backend{}, []server{coro.Serve(func(c *coro.Conn) error {
		in := bufio.NewReader(c)
		require.Contains(t, head(in), "\nSec-WebSocket-Key: ")
		_, _ = io.WriteString(c, strings.ReplaceAll(switches+socket+"Sec-WebSocket-Accept: y\nX: z\n\n", "\n", "\r\n"))
		_, err := io.Copy(c, in)
		ended = true
		return err
	})})
	f.Client(front, func(c *sim.Client) error {
		block := http2.AppendField(http2.AppendRequest(nil, "CONNECT", "http", "a", "/", "websocket"), "sec-websocket-version", "13")
		_, _ = c.Write(http2.AppendHeaders(http2.AppendSettings([]byte(http2.Preface)), 1, block, false))
		_, _ = c.Write(append(http2.Header{Length: 5, Type: http2.Data, Stream: 1}.Append(nil), "hello"...))
		for got := ""; got != "hello"; {
			header := make([]byte, http2.HeaderLen)
			_, err := io.ReadFull(c, header)
			require.NoError(t, err)
			h := http2.ParseHeader(header)
			payload := make([]byte, h.Length)
			_, err = io.ReadFull(c, payload)
			require.NoError(t, err)
			switch h.Type {
			case http2.Headers:
				var memory []byte
				var answer http2.Head
				d := http2.NewDecoder(&memory)
				d.Response = true
				d.Begin(&answer, http2.Limits{}, false)
				require.Nil(t, d.Write(payload))
				require.Nil(t, d.End(false))
				require.EqualValues(t, 200, answer.Status)
				require.Equal(t, "z", string(syntax.Get(answer.Fields, answer.Text, "x")))
				require.Nil(t, syntax.Get(answer.Fields, answer.Text, "sec-websocket-accept"))
			case http2.Data:
				got += string(payload)
			}
		}
		_, _ = c.Write(http2.AppendRST(nil, 1, http2.Cancel))
		c.Sleep(10 * time.Millisecond)
		require.True(t, ended)
		return nil
	})
	require.NoError(t, f.World.Run())
}

// TestShutdownWithinARequest: it is answered to the end.
func TestShutdownWithinARequest(t *testing.T) {
	slow := httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		return coro.New(func(co *coro.Co) error {
			for range 10 {
				_, _ = io.WriteString(w, "hello")
				_ = w.Flush()
				_ = co.Sleep(time.Second)
			}
			return nil
		})
	}}
	f := through(t, Config{}, Backend{}, []server{slow.Serve})
	f.At(5*time.Second, func() { f.gateway.Shutdown(shutdown.Policy{Time: time.Minute, Drop: true}) })
	f.Client(front, func(c *sim.Client) error {
		require.Equal(t, strings.Repeat("hello", 10), get(c, "/"))
		return nil
	})
	require.NoError(t, f.World.Run())
}
