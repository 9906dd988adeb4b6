package monitor

import (
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
)

// Dial is a connect under way.
type Dial struct {
	k *socket // nil: taken or closed
}

// DialTCP begins to connect to addr. Small segments go out at once, as with Go's net package and with what
// a service accepts.
func (src *Source) DialTCP(addr netip.AddrPort) (*Dial, error) {
	fd, done, err := src.io.os.DialTCP(addr)
	if err == nil {
		_ = src.io.os.SetNoDelay(fd, true) // without it all is slower, not wrong
	}
	return src.dial(fd, done, err)
}

// DialUnix begins to connect to the socket at path.
func (src *Source) DialUnix(path string) (*Dial, error) {
	fd, done, err := src.io.os.DialUnix(path)
	return src.dial(fd, done, err)
}

func (src *Source) dial(fd int, done bool, err error) (*Dial, error) {
	if err != nil {
		return nil, err
	}
	if !src.account.Enter() {
		_ = src.io.os.Close(fd)
		return nil, ErrFull
	}
	k, err := src.adopt(fd)
	if err != nil {
		return nil, err
	}
	if !done {
		k.state |= dialing
	}
	return &Dial{k}, nil
}

// Stream is the connection; ErrWouldBlock: it is not decided yet. Any other error is final and the
// descriptor is closed.
func (d *Dial) Stream() (Stream, error) {
	k := d.k
	if k == nil {
		return nil, net.ErrClosed
	}
	if k.state&dialing != 0 {
		if k.ready&(netpoll.Out|netpoll.Error) == 0 {
			return nil, ErrWouldBlock
		}
		if err := k.source.io.os.SocketError(int(k.fd)); err != nil {
			d.Close()
			return nil, err
		}
		k.state &^= dialing
	}
	d.k = nil
	return k, nil
}

// Await keeps w, in place of an earlier one, and wakes it when the connect is decided.
func (d *Dial) Await(w act.Waker) {
	if d.k != nil {
		d.k.AwaitInput(w)
	}
}

// Close gives it up, unless its Stream was taken.
func (d *Dial) Close() {
	if d.k != nil {
		d.k.Abort()
		d.k = nil
	}
}
