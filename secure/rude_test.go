package secure_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
)

// stalls makes n clients that send the first part of a ClientHello, or all of it, and then nothing.
func (v *serving) stalls(n, part int, cfg *tls.Config) (all []net.Conn) {
	v.T.Helper()
	for range n {
		c := servertest.Dial(v.T, v.Addr())
		stall(v.T, c, part, cfg)
		all = append(all, c)
	}
	return all
}

// stall sends so many hundredths of a ClientHello.
func stall(t testing.TB, c net.Conn, part int, cfg *tls.Config) {
	t.Helper()
	hello := clientHello(c, cfg)
	servertest.Send(t, c, string(hello[:len(hello)*part/100]))
}

// clientHello returns what a client begins with on c.
func clientHello(c net.Conn, cfg *tls.Config) []byte {
	h := &holding{Conn: c, on: true}
	_ = c.SetReadDeadline(time.Now())
	_ = tls.Client(h, cfg).Handshake()
	_ = c.SetReadDeadline(time.Now().Add(servertest.Timeout))
	return h.held.Bytes()
}

// A client that speaks HTTP without TLS is told so, and other foreign bytes end the connection at once.
func TestForeignBytes(t *testing.T) {
	server, _ := identities(t)
	s := serve(t, overTLS(server))
	for _, method := range []string{"GET", "POST", "PRI"} {
		c := servertest.Dial(t, s.Addr())
		servertest.Send(t, c, method+" / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nbody")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, 400, answer.StatusCode)
		require.Contains(t, string(text), "https://")
		_ = c.Close()
	}
	for _, foreign := range []string{"\x00", "\n", "ssh", "\x05\x01\x00", "\x80\x2e\x01\x00\x02", "\x15\x03\x01\x00\x02\x01\x00",
		"\x16\x13\x37\xff\xff", "\x16\x00\x00\x00\x00", "\x16\x03\x01\x00\x00", "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x04\x01\xff\xff\xff"} {
		c := servertest.Dial(t, s.Addr())
		servertest.Send(t, c, foreign)
		_, err := io.Copy(io.Discard, c)
		require.NoError(t, err, "%q", foreign)
		_ = c.Close()
	}
	s.drain()
	s.withoutReports()
}
