package websocket

import (
	"crypto/rand"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
)

// masker makes the keys with which the clients of a scheduler mask their frames: keys that nobody can foresee (RFC 6455
// 5.3), taken from the kernel many at a time, and memory for masked bytes on their way to a listener.Conn, which copies or
// sends them.
type masker struct {
	keys  [1 << 10]byte
	used  int
	space [16 << 10]byte
}

var masks = act.NewLocal(func(*act.Scheduler) *masker { return &masker{used: len(masker{}.keys)} })

// random fills p with bytes that are used once.
func (m *masker) random(p []byte) {
	if len(m.keys)-m.used < len(p) {
		_, _ = rand.Read(m.keys[:]) // it does not fail
		m.used = 0
	}
	clear(m.keys[m.used : m.used+copy(p, m.keys[m.used:])])
	m.used += len(p)
}

// masked returns a copy of a server's frame, with a mask.
func (c *Conn) masked(plain []byte) []byte {
	h, n, _ := frame.Parse(plain, false, true)
	h.Masked = true
	masks.Get(c.conn.Scheduler()).random(h.Key[:])
	to := h.Append(make([]byte, 0, frame.MaxHeader+len(plain)))
	payload := len(to)
	to = append(to, plain[n:]...)
	frame.Mask(to[payload:], to[payload:], h.Key, 0)
	return to[:len(to):len(to)]
}

// writeMasked writes the payload of a client's frame.
func (c *Conn) writeMasked(p []byte, key [4]byte) {
	m := masks.Get(c.conn.Scheduler())
	for at := 0; at < len(p); {
		n := min(len(p)-at, len(m.space))
		frame.Mask(m.space[:n], p[at:at+n], key, int64(at))
		c.write(m.space[:n])
		at += n
	}
}
