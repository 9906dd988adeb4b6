package secure_test

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// corked is a net.Conn that keeps what is written until it is flushed.
type corked struct {
	net.Conn
	cork bool
	out  []byte
}

func (c *corked) Write(p []byte) (int, error) {
	if c.out = append(c.out, p...); c.cork {
		return len(p), nil
	}
	_, err := c.Conn.Write(c.out)
	c.out = nil
	return len(p), err
}

// SetWriteDeadline has no effect: crypto/tls ends all writing with it.
func (c *corked) SetWriteDeadline(time.Time) error { return nil }

// Reads that took a record in pieces were counted as so many records, and the wake-up for the next one was lost.
func TestRecordBehindOneThatIsReadInPiecesIsNotForgotten(t *testing.T) {
	server, client := identities(t)
	for _, v := range versions {
		s := serve(t, &service.TCP{Handler: echo, Filters: []listener.Filter{secure.Server(server, nil)}, Limits: listener.Limits{Read: 100}})
		raw := &corked{Conn: servertest.Dial(t, s.Addr())}
		c := tls.Client(raw, version(client, v))
		require.NoError(t, c.Handshake())
		raw.cork = true
		sent := string(noise(2050))
		servertest.Send(t, c, sent[:1025]) // one record each
		servertest.Send(t, c, sent[1025:])
		require.NoError(t, c.CloseWrite())
		_, err := raw.Conn.Write(raw.out)
		require.NoError(t, err)
		servertest.Expect(t, c, sent)
		servertest.ExpectEOF(t, c)
		_ = raw.Close()
		s.drain()
	}
}
