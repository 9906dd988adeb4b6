package sim

import (
	"syscall"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// Descriptor is a descriptor of a Server that is not a socket, for [monitor.Watch]. The scenario plays the device or
// the child process that it stands for. All methods are for the goroutine that runs the world.
type Descriptor struct {
	v     *Server
	f     *file
	ready netpoll.Ready
	polls []*poll // of completion engines
}

// Descriptor opens a descriptor that is not a socket: see [Descriptor]. The scenario closes it.
func (v *Server) Descriptor() *Descriptor {
	d := &Descriptor{v: v}
	d.f = &file{fake: d}
	v.kernel.install(d.f)
	return d
}

// FD returns the number of the descriptor, for [monitor.Watch].
func (d *Descriptor) FD() int { return d.f.fd }

// Ready makes the descriptor ready for netpoll.In, Out or both, until Take.
func (d *Descriptor) Ready(r netpoll.Ready) {
	d.ready |= r
	d.f.ready()
	for _, p := range d.polls {
		p.begin()
	}
}

// Take stands for the call of the server that uses the readiness, such as a read. It reports whether the descriptor was
// ready for r; from then on it is not.
func (d *Descriptor) Take(r netpoll.Ready) bool {
	was := d.ready&r != 0
	d.ready &^= r
	return was
}

// Close closes the descriptor. The server must have stopped watching it.
func (d *Descriptor) Close() {
	if len(d.polls) > 0 || d.f.reg != nil {
		d.v.w.Errorf("%v is closed and still watched", d.f)
		return
	}
	d.v.kernel.remove(d.f.fd)
}

// poll is a descriptor that a completion engine watches.
type poll struct {
	e      *completer
	d      *Descriptor
	want   netpoll.Ready
	report func(netpoll.Ready)
	over   bool
}

// Watch implements engine.Engine.
func (e *completer) Watch(fd int, want netpoll.Ready, report func(netpoll.Ready)) (stop func() error, err error) {
	f := e.r.server.kernel.get(fd, "watch")
	switch {
	case f.fake == nil:
		return nil, syscall.EINVAL
	case len(f.fake.polls) > 0:
		return nil, syscall.EEXIST
	}
	p := &poll{e: e, d: f.fake, want: want, report: report}
	p.d.polls = append(p.d.polls, p)
	p.begin()
	return p.stop, nil
}

// begin has a poll complete, if the descriptor is ready then.
func (p *poll) begin() {
	p.e.later(func() {
		if ready := p.d.ready & p.want; !p.over && ready != 0 {
			p.report(ready)
			p.e.r.wake()
		}
	})
}

func (p *poll) stop() error {
	p.over, p.d.polls = true, nil
	return nil
}

var _ engine.Engine = (*completer)(nil)
