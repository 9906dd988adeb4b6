// Package tlstest makes records of TLS 1.3, so that a peer in a test can send what crypto/tls does not. Only tests import
// it.
package tlstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// The types of records (RFC 8446, section 5.1).
const (
	Alert     = 21
	Handshake = 22
	Data      = 23
)

// CloseNotify is the message of an alert.
var CloseNotify = []byte{1, 0}

// Sealer is the record layer of a client with the cipher suite TLS_AES_128_GCM_SHA256, after a handshake of crypto/tls
// (RFC 8446, sections 5.2 and 7).
type Sealer struct {
	secret, iv []byte
	aead       cipher.AEAD
	sequence   uint64
}

// NewSealer takes the client's key from a log of keys: see tls.Config.KeyLogWriter. It is an error if the suite is another
// one: without instructions for AES in the machine crypto/tls chooses ChaCha20-Poly1305, of which the standard library exports
// no implementation. Neither side has a say in that (tls.Config.CipherSuites is not for TLS 1.3).
func NewSealer(state tls.ConnectionState, log string) (*Sealer, error) {
	if state.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		return nil, fmt.Errorf("no record layer for %s: this test needs a machine with instructions for AES",
			tls.CipherSuiteName(state.CipherSuite))
	}
	var random, secret string
	for line := range bytes.Lines([]byte(log)) {
		if n, _ := fmt.Sscanf(string(line), "CLIENT_TRAFFIC_SECRET_0 %s %s", &random, &secret); n == 2 {
			key, err := hex.DecodeString(secret)
			if err != nil {
				return nil, err
			}
			s := &Sealer{}
			s.use(key)
			return s, nil
		}
	}
	return nil, errors.New("the log has no key")
}

// use seals with the keys of secret from now on.
func (s *Sealer) use(secret []byte) {
	block, err := aes.NewCipher(expand(secret, "key", 16))
	if err == nil {
		s.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(err) // the key has another length
	}
	s.secret, s.iv, s.sequence = secret, expand(secret, "iv", 12), 0
}

// expand is HKDF-Expand-Label without a context.
func expand(secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(n)), byte(len(label)))
	key, err := hkdf.Expand(sha256.New, secret, string(info)+label+"\x00", n)
	if err != nil {
		panic(err) // n is too large
	}
	return key
}

// Record returns the next record: a message of the given type, with as many bytes of padding.
func (s *Sealer) Record(kind byte, message []byte, padding int) []byte {
	plain := append(append(bytes.Clone(message), kind), make([]byte, padding)...)
	head := binary.BigEndian.AppendUint16([]byte{Data, 3, 3}, uint16(len(plain)+s.aead.Overhead()))
	nonce := bytes.Clone(s.iv)
	for i, b := range binary.BigEndian.AppendUint64(nil, s.sequence) {
		nonce[len(nonce)-8+i] ^= b
	}
	s.sequence++
	return s.aead.Seal(head, nonce, plain, head)
}

// KeyUpdate returns a KeyUpdate, which may ask for one in return, and goes on to the next keys (section 4.6.3).
func (s *Sealer) KeyUpdate(ask bool) []byte {
	message := []byte{24, 0, 0, 1, 0}
	if ask {
		message[4] = 1
	}
	p := s.Record(Handshake, message, 0)
	s.use(expand(s.secret, "traffic upd", sha256.Size))
	return p
}
