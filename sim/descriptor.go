package sim

import (
	"github.com/daimon-go/daimon/netpoll"
)

// Descriptor is a descriptor of a Server that is not a socket, for [monitor.Watch]. The scenario plays the device or
// the child process that it stands for. All methods are for the goroutine that runs the world.
type Descriptor struct {
	v     *Server
	f     *file
	ready netpoll.Ready
}

// Descriptor opens a descriptor of the server that is not a socket: see the type [Descriptor]. The scenario closes it.
func (v *Server) Descriptor() *Descriptor {
	d := &Descriptor{v: v}
	d.f = &file{fake: d}
	v.kernel.install(d.f)
	return d
}

// FD returns the number of the descriptor, which the server gives to [monitor.Watch].
func (d *Descriptor) FD() int { return d.f.fd }

// Ready makes the descriptor ready for r, netpoll.In, Out or both, until Take. The server finds that out as from epoll.
func (d *Descriptor) Ready(r netpoll.Ready) {
	d.ready |= r
	d.f.ready()
}

// Take stands for the call of the server that uses the readiness, such as a read. It reports whether the descriptor was
// ready for r; from then on it is not.
func (d *Descriptor) Take(r netpoll.Ready) bool {
	was := d.ready&r != 0
	d.ready &^= r
	return was
}

// Close closes the descriptor. The server must have stopped watching it before; otherwise the world fails.
func (d *Descriptor) Close() {
	if d.f.reg != nil {
		d.v.w.Errorf("%v is closed and still watched", d.f)
		return
	}
	d.v.kernel.remove(d.f.fd)
}
