package secure

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/monitor"
)

// wire is a stream as the net.Conn below its tls.Conn.
type wire stream

// errNotYet is a temporary net.Error: after it a tls.Conn can be read again.
var errNotYet net.Error = notYet{}

type notYet struct{}

func (notYet) Error() string   { return "secure: no record yet" }
func (notYet) Timeout() bool   { return false }
func (notYet) Temporary() bool { return true }

func (w *wire) Read(p []byte) (int, error) {
	for w.shake != nil && len(w.in) == 0 {
		if err := w.shake.await(); err != nil {
			return 0, err
		}
	}
	if len(w.in) > 0 {
		n := copy(p, w.in)
		if w.in = w.in[n:]; len(w.in) == 0 {
			w.in = nil
		}
		return n, nil
	}
	n, err := w.Stream.Receive(p)
	switch err {
	case nil:
		w.records.pass(p[:n])
	case monitor.ErrWouldBlock:
		return n, errNotYet
	default:
		w.broken = err
	}
	return n, err
}

// Write takes all of p. It is sent by flush.
func (w *wire) Write(p []byte) (int, error) {
	if w.lent != nil {
		return w.lent.write(p)
	}
	if w.out == nil && w.cache != nil {
		w.out, w.cache.out = w.cache.out, nil
	}
	w.out = append(w.out, p...)
	return len(p), nil
}

// Close does nothing: it is not the tls.Conn that closes a stream.
func (w *wire) Close() error { return nil }

// LocalAddr is for the functions of a tls.Config, which are called during the handshake.
func (w *wire) LocalAddr() net.Addr {
	if w.shake != nil {
		return w.shake.local
	}
	return w.Stream.LocalAddr()
}

// RemoteAddr is as LocalAddr.
func (w *wire) RemoteAddr() net.Addr {
	if w.shake != nil {
		return w.shake.peer
	}
	return w.Stream.PeerAddr()
}

// Deadlines are the deadlines of the listener.Conn.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// headLength is the length of the head of a record, and longest that of the body of one (RFC 8446, section 5).
const (
	headLength = 5
	longest    = 16<<10 + 2<<10
)

// records follows the records in the bytes that pass by, so that nobody asks crypto/tls for a record that is not there:
// that costs an allocation.
type records struct {
	whole   int32 // have passed by, and may not have been taken
	size    int32 // bytes of the present body, once its head has passed by
	left    int32 // of these, those still to come
	head    uint8 // bytes of the present head that have passed
	foreign bool  // a head was not one of TLS, or of a record that is too long
}

func (r *records) pass(p []byte) {
	for len(p) > 0 {
		if r.head < headLength {
			switch r.head++; {
			case r.head == 2 && p[0] != 3: // all versions of TLS are 3.x here
				r.foreign = true
			case r.head > headLength-2:
				r.left = r.left<<8 | int32(p[0])
				r.foreign = r.foreign || r.left > longest
				r.size = r.left
			}
			p = p[1:]
		} else {
			n := min(int(r.left), len(p))
			r.left -= int32(n)
			p = p[n:]
		}
		if r.head == headLength && r.left == 0 {
			r.whole++
			r.head = 0
		}
	}
}

// atRest reports whether no record has passed by in whole or in part that was not taken. After the last record there is one:
// crypto/tls takes nothing of it.
func (r *records) atRest() bool { return r.whole == 0 && r.head == 0 }

// held returns how much memory crypto/tls has for records that have not been taken: it makes room for all of one when its head
// has come.
func (r *records) held() int {
	switch {
	case r.whole > 0:
		return longest
	case r.head == headLength:
		return headLength + int(r.size)
	}
	return int(r.head)
}

// spoiled reports whether the present head cannot be that of a record: crypto/tls refuses it without its body.
func (r *records) spoiled() bool { return r.head == headLength && r.foreign }
