package monitor

import (
	"errors"
	"fmt"
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// dial is an engine.PendingConn.
type dial struct {
	k *socket // nil: taken or closed
}

func (e *readiness) Dial(addr net.Addr, o engine.ConnOptions) (engine.PendingConn, error) {
	fd, done, local, err := -1, false, false, error(nil)
	switch addr := addr.(type) {
	case *net.TCPAddr:
		if fd, done, err = e.os.DialTCP(addr.AddrPort()); err == nil {
			_ = e.os.SetNoDelay(fd, true) // an error makes the connection slower, not wrong
			err = e.os.SetKeepAlive(fd, keptAlive(o.KeepAlive))
		}
	case *net.UnixAddr:
		local = true
		fd, done, err = e.os.DialUnix(addr.Name)
	default:
		err = fmt.Errorf("monitor: dialing %T: %w", addr, errors.ErrUnsupported)
	}
	if err == nil {
		err = e.setBuffers(fd, o)
	}
	if err != nil {
		if fd >= 0 {
			_ = e.os.Close(fd) // the error that matters is the other one
		}
		return nil, err
	}
	k, err := e.sourceOf(local, nil).adopt(fd)
	if err != nil {
		return nil, err
	}
	e.counts.Dials++
	if !done {
		k.state |= dialing
	}
	return &dial{k}, nil
}

func (d *dial) Stream() (engine.Stream, error) {
	k := d.k
	if k == nil {
		return nil, net.ErrClosed
	}
	if k.state&dialing != 0 {
		if k.ready&(netpoll.Out|netpoll.Error) == 0 {
			return nil, ErrWouldBlock
		}
		if err := k.source.e.os.SocketError(int(k.fd)); err != nil {
			d.Close()
			return nil, err
		}
		k.state &^= dialing
	}
	d.k = nil
	return k, nil
}

func (d *dial) Await(w act.Waker) {
	if d.k == nil {
		w.Wake()
		return
	}
	d.k.AwaitInput(w)
}

func (d *dial) Close() {
	if d.k != nil {
		d.k.Abort()
		d.k = nil
	}
}
