package secure_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
)

// raw is a client of TLS 1.3 that makes its records by itself after a handshake of crypto/tls, so that it can send what
// crypto/tls does not (RFC 8446, sections 5.2 and 7).
type raw struct {
	net.Conn
	t      testing.TB
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

const (
	alertRecord     = 21
	messageRecord   = 22 // of a handshake
	dataRecord      = 23
	keyUpdate       = 24
	keyUpdateLength = 1
)

// raw makes a handshake.
func (v *serving) raw(cfg *tls.Config) *raw {
	v.T.Helper()
	var log keyLog
	cfg = version(cfg, tls.VersionTLS13)
	cfg.KeyLogWriter = &log
	c := v.dial(cfg)
	require.Equal(v.T, tls.TLS_AES_128_GCM_SHA256, c.ConnectionState().CipherSuite)
	r := &raw{Conn: c.NetConn(), t: v.T}
	for _, line := range log.lines() {
		if words := strings.Fields(line); words[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(words[2])
			require.NoError(v.T, err)
			r.use(secret)
		}
	}
	require.NotNil(v.T, r.secret)
	return r
}

// use sends with the keys of secret from now on.
func (r *raw) use(secret []byte) {
	block, err := aes.NewCipher(expand(r.t, secret, "key", 16))
	require.NoError(r.t, err)
	r.aead, err = cipher.NewGCM(block)
	require.NoError(r.t, err)
	r.secret, r.iv, r.seq = secret, expand(r.t, secret, "iv", 12), 0
}

// expand is HKDF-Expand-Label without a context.
func expand(t testing.TB, secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := append([]byte{byte(n >> 8), byte(n), byte(len(label))}, label...)
	key, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
	require.NoError(t, err)
	return key
}

// record returns the next record, with the given content and as many bytes of padding.
func (r *raw) record(content byte, data string, padding int) []byte {
	plain := append(append([]byte(data), content), make([]byte, padding)...)
	n := len(plain) + r.aead.Overhead()
	head := []byte{dataRecord, 3, 3, byte(n >> 8), byte(n)}
	nonce := append([]byte{}, r.iv...)
	for i, b := range binary.BigEndian.AppendUint64(nil, r.seq) {
		nonce[len(nonce)-8+i] ^= b
	}
	r.seq++
	return r.aead.Seal(head, nonce, plain, head)
}

// keyUpdate returns a KeyUpdate that asks for another one, and goes on to the next keys.
func (r *raw) keyUpdate() []byte {
	p := r.record(messageRecord, string([]byte{keyUpdate, 0, 0, keyUpdateLength, 1}), 0)
	r.use(expand(r.t, r.secret, "traffic upd", sha256.Size))
	return p
}

func (r *raw) send(records ...[]byte) {
	r.t.Helper()
	for _, p := range records {
		servertest.Send(r.t, r, string(p))
	}
}
