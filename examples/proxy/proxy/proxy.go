// Package proxy forwards connections: it dials, and copies bytes both ways with backpressure.
package proxy

import (
	"io"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
)

// patience bounds a connect.
const patience = 10 * time.Second

// To returns a handler that forwards each connection to address. It reads from a side only as fast as the other side takes the
// bytes: in each direction at most Limits.Read and Limits.High bytes are under way. The end of one direction is passed on
// while the other goes on; a reset on one side resets the other. If the connect fails, the connection is closed and the task
// fails. After a shutdown request it goes on until both sides have closed. The filters prepare the dialled connection, in this
// order; each is made for the connection that was accepted.
func To(address string, filters ...func(near *listener.Conn) listener.Filter) func(*listener.Conn) act.Action {
	return func(near *listener.Conn) act.Action {
		dial := &listener.Connect{Address: address}
		for _, filter := range filters {
			dial.Filters = append(dial.Filters, filter(near))
		}
		return act.Seq(listener.Within(patience, dial), &passage{near: near, dial: dial})
	}
}

// Header returns what makes the filters that tell the other side, in a PROXY header of this version, where each connection
// comes from. If the connection began with a header, the addresses are the ones in it, and its values are passed on.
func Header(version int) func(near *listener.Conn) listener.Filter {
	return func(near *listener.Conn) listener.Filter {
		h, _ := proxyproto.Of(near)
		h.Version, h.Source, h.Destination = version, near.RemoteAddr(), near.LocalAddr()
		return proxyproto.Client(h)
	}
}

// passage copies bytes between two connections.
type passage struct {
	near, far   *listener.Conn
	dial        *listener.Connect
	there, back pipe
}

func (p *passage) Act(t *act.Task) act.Directive {
	if p.far == nil {
		p.far = p.dial.Conn()
		p.there, p.back = pipe{from: p.near, to: p.far}, pipe{from: p.far, to: p.near}
	}
	there, back := p.there.Act(t), p.back.Act(t)
	switch {
	case there == act.Failed || back == act.Failed: // not act.All, which would wait for the other
		p.near.Abort()
		p.far.Abort()
		return act.Failed
	case there == act.Done && back == act.Done:
		_ = p.far.Close() // the service closes the near one
		return act.Done
	case there == act.Yield || back == act.Yield:
		return act.Yield
	}
	return act.Wait
}

// Close aborts the dialled connection if the passage has not finished.
func (p *passage) Close() error {
	if p.far != nil {
		p.far.Abort()
	}
	return nil
}

// pipe is one direction.
type pipe struct {
	from, to *listener.Conn
	ended    bool
}

func (p *pipe) Act(t *act.Task) act.Directive {
	if p.ended {
		return p.watch(t)
	}
	in, err := p.from.Peek(1)
	if err == io.EOF {
		if err = p.to.CloseWrite(); err == nil {
			p.ended = true
			return p.watch(t)
		}
	}
	if err != nil {
		return listener.Next(t, err)
	}
	n, err := p.to.Write(in)
	p.from.Discard(n)
	return p.from.Next(t, err)
}

// watch has t woken by a reset after the end, while the other direction goes on.
func (p *pipe) watch(t *act.Task) act.Directive {
	if _, err := p.from.Ended(t); err != nil {
		return t.Fail(err)
	}
	return act.Done
}
