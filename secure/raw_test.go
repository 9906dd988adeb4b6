package secure_test

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tlstest"
)

// raw is a client that makes its records by itself after a handshake of crypto/tls.
type raw struct {
	net.Conn
	*tlstest.Sealer
	on *serving
}

// raw makes a handshake.
func (v *serving) raw(cfg *tls.Config) *raw {
	v.T.Helper()
	var log keyLog
	cfg = version(cfg, tls.VersionTLS13)
	cfg.KeyLogWriter = &log
	c := v.dial(cfg)
	sealer, err := tlstest.NewSealer(c.ConnectionState(), strings.Join(log.lines(), "\n"))
	require.NoError(v.T, err)
	return &raw{c.NetConn(), sealer, v}
}

// record returns a record without padding.
func (r *raw) record(kind byte, message string) []byte { return r.Record(kind, []byte(message), 0) }

// padded returns a record of data with padding.
func (r *raw) padded(data string, padding int) []byte {
	return r.Record(tlstest.Data, []byte(data), padding)
}

func (r *raw) send(records ...[]byte) {
	r.on.T.Helper()
	for _, p := range records {
		servertest.Send(r.on.T, r, string(p))
	}
}
