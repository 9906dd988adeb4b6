package worlds_test

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestTLSKeyUpdates has clients ask for new keys all the time, which crypto/tls answers when it reads. One that does not read
// the answers is not read from either.
func TestTLSKeyUpdates(t *testing.T) {
	held, whole := 0, 0
	try(t, sim.Options{}, func(w *world) {
		const address = "10.0.0.1:7007"
		w.client.MaxVersion = 0
		limits := patient(w.World)
		most := cmp.Or(limits.High, 64<<10)
		behind := most + 16<<10 + 4<<10 // the bound for what crypto/tls answers, and what a turn adds
		behind += behind/1000*32 + 1000
		answers, got := pick(w.World, false, true), 0
		handler := func(c *listener.Conn) act.Action {
			a := echo.Echo(c)
			if !answers {
				a = sink(c, &got)
			}
			return &watched{Child: act.Child{Action: a}, after: func() {
				switch n := c.Queued(); {
				case n > behind:
					w.Errorf("%d bytes are queued, %d is the bound", n, behind)
				case n > most+16<<10:
					held++
				}
			}}
		}
		tcp := &service.TCP{Address: address, Handler: handler, Limits: limits, Filters: w.filters()}
		_, err := w.Server("server", config(w.World), append(engine(w.World), tcp.Setup)...)
		require.NoError(t, err)
		w.Client(address, func(c *sim.Client) error { return w.updates(c, answers, &got, &whole) })
	})
	t.Logf("%d connections served to their end; nothing was decrypted %d times", whole, held)
	require.Positive(t, held)
	require.Positive(t, whole)
}

// sink reads to the end, and answers nothing.
func sink(c *listener.Conn, got *int) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		*got += len(in)
		c.Discard(len(in))
		return c.Next(t, err)
	})
}

// updates is a client that writes records of its own: data, and demands for new keys. It begins to read at once, or after a
// while.
func (w *world) updates(c *sim.Client, answers bool, got, whole *int) error {
	x := newTalker(w, c)
	x.most, x.gap = 1<<20, 0
	secrets := &bytes.Buffer{}
	cfg := w.client.Clone()
	cfg.KeyLogWriter = secrets
	x.tls = tls.Client(x.wire, cfg)
	if err := x.shake(); err != nil {
		return err
	}
	if x.tls.ConnectionState().CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		return nil // no AES in this machine
	}
	out, err := newSealer(secrets.String())
	if err != nil {
		return err
	}
	if c.Rand().IntN(3) == 0 {
		return x.demandsOnce(out)
	}
	c.Go(func(*sim.Client) error {
		c.Sleep(pickFrom(c.Rand().IntN, 0, 10*time.Second, 10*time.Second))
		if !answers { // crypto/tls reads no more than 16 new keys in a row
			_, err := io.Copy(io.Discard, c)
			if err == nil && *got != x.sent {
				err = fmt.Errorf("%d bytes of %d have arrived", *got, x.sent)
			}
			*whole++
			return err
		}
		*whole++
		in, err := io.ReadAll(x.tls)
		if err := x.compare(in); err != nil {
			return err
		}
		if err == nil && (x.ended || x.got != x.sent) {
			err = fmt.Errorf("the server has ended the connection after %d bytes of %d", x.got, x.sent)
		}
		return err
	})
	for range 100 + c.Rand().IntN(400) {
		p := make([]byte, 1+c.Rand().IntN(pickFrom(c.Rand().IntN, 1, 100)))
		for i := range p {
			p[i] = x.at(x.sent)
			x.sent++
		}
		x.out = append(x.out, out.record(23, p)...)
		for range c.Rand().IntN(15) { // 16 in a row are an error
			x.out = append(x.out, out.update(c.Rand().IntN(8) > 0)...)
		}
		if err := x.flush(); err != nil {
			return err
		}
	}
	x.out = append(x.out, out.record(21, []byte{1, 0})...)
	return x.flush()
}

// demandsOnce wants an answer although the server has nothing to say.
func (x *talker) demandsOnce(out *sealer) error {
	_ = x.Client.SetReadDeadline(x.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, x.Client) // the tickets
	x.out = append(x.out, out.update(true)...)
	if err := x.flush(); err != nil {
		return err
	}
	_ = x.Client.SetReadDeadline(x.Now().Add(time.Second))
	if n, err := x.Client.Read(make([]byte, 100)); n == 0 {
		return fmt.Errorf("the server has not answered a demand for new keys: %w", err)
	}
	x.Abort()
	return nil
}

// sealer is the record layer of a client of TLS 1.3 with TLS_AES_128_GCM_SHA256 (RFC 8446, sections 5.2 and 7).
type sealer struct {
	secret, iv []byte
	aead       cipher.AEAD
	sequence   uint64
}

// newSealer takes over after the handshake. Its argument is a log of keys.
func newSealer(log string) (*sealer, error) {
	var random, secret string
	for line := range bytes.Lines([]byte(log)) {
		if n, _ := fmt.Sscanf(string(line), "CLIENT_TRAFFIC_SECRET_0 %s %s", &random, &secret); n == 2 {
			s := &sealer{}
			var err error
			if s.secret, err = hex.DecodeString(secret); err == nil {
				err = s.rekey()
			}
			return s, err
		}
	}
	return nil, errors.New("the log has no key")
}

func (s *sealer) rekey() error {
	key, err := expand(s.secret, "key", 16)
	if err != nil {
		return err
	}
	if s.iv, err = expand(s.secret, "iv", 12); err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	s.sequence = 0
	s.aead, err = cipher.NewGCM(block)
	return err
}

// expand is HKDF-Expand-Label.
func expand(secret []byte, label string, n int) ([]byte, error) {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(n)), byte(len(label)))
	return hkdf.Expand(sha256.New, secret, string(info)+label+"\x00", n)
}

// record returns a record of one type.
func (s *sealer) record(kind byte, p []byte) []byte {
	p = append(bytes.Clone(p), kind)
	head := binary.BigEndian.AppendUint16([]byte{23, 3, 3}, uint16(len(p)+s.aead.Overhead()))
	nonce := bytes.Clone(s.iv)
	for i := range 8 {
		nonce[11-i] ^= byte(s.sequence >> (8 * i))
	}
	s.sequence++
	return s.aead.Seal(head, nonce, p, head)
}

// update returns a KeyUpdate, and changes the keys.
func (s *sealer) update(demand bool) []byte {
	p := []byte{24, 0, 0, 1, 0}
	if demand {
		p[4] = 1
	}
	r := s.record(22, p)
	var err error
	if s.secret, err = expand(s.secret, "traffic upd", 32); err == nil {
		err = s.rekey()
	}
	if err != nil {
		panic(err)
	}
	return r
}
