// Package filtertest has a filter for the tests of services and connects, which changes all bytes. Only tests import it.
package filtertest

import (
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// ErrKey is the refusal of a peer that does not send its key.
var ErrKey = errors.New("filtertest: the key is 0")

// Mask is a filter that hides all bytes: both sides first send a key of one byte, other than 0, which is added to all
// further bytes of that side. It stands for TLS: a handshake both ways, and then other bytes.
func Mask(key byte) listener.Filter {
	return func(c *listener.Conn) act.Action {
		said := false
		return act.Func(func(t *act.Task) act.Directive {
			if !said {
				said = true
				if _, err := c.Write([]byte{key}); err != nil {
					return t.Fail(err)
				}
			}
			in, err := c.Peek(1)
			if err != nil {
				if d := listener.Next(t, err); d != act.Done {
					return d
				}
				return t.Fail(ErrKey) // the end came first
			}
			if in[0] == 0 {
				return t.Fail(ErrKey)
			}
			m := &masked{in: in[0], out: key}
			m.ahead = m.unmask(append([]byte(nil), in[1:]...)) // comes before what the Stream below has
			c.Discard(len(in))
			if err := c.Wrap(func(s monitor.Stream) monitor.Stream { m.Stream = s; return m }); err != nil {
				return t.Fail(err)
			}
			return act.Done
		})
	}
}

// masked is the Stream.
type masked struct {
	monitor.Stream
	in, out byte   // keys
	ahead   []byte // received, unmasked and not lent
	buffer  []byte // what Send masks
}

func (m *masked) unmask(p []byte) []byte {
	for i := range p {
		p[i] -= m.in
	}
	return p
}

func (m *masked) Lend(most int) ([]byte, error) {
	if n := min(most, len(m.ahead)); n > 0 {
		p := m.ahead[:n:n]
		m.ahead = m.ahead[n:]
		return p, nil
	}
	p, err := m.Stream.Lend(most)
	return m.unmask(p), err // a loan is memory of its own
}

func (m *masked) Receive(p []byte) (int, error) {
	if n := copy(p, m.ahead); n > 0 {
		m.ahead = m.ahead[n:]
		return n, nil
	}
	n, err := m.Stream.Receive(p)
	m.unmask(p[:n])
	return n, err
}

func (m *masked) AwaitInput(w act.Waker) {
	if len(m.ahead) > 0 {
		w.Wake()
		return
	}
	m.Stream.AwaitInput(w)
}

// Send may not change p, and the part of p that is not taken is sent again.
func (m *masked) Send(head, p []byte, high int) (int, error) {
	if len(head)+len(p) == 0 {
		return m.Stream.Send(nil, nil, high)
	}
	m.buffer = append(append(m.buffer[:0], head...), p...)
	for i := range m.buffer {
		m.buffer[i] += m.out
	}
	return m.Stream.Send(m.buffer[:len(head)], m.buffer[len(head):], high)
}
