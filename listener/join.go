package listener

import (
	"io"

	"github.com/daimon-go/daimon/act"
)

// Join returns an action that copies bytes between two connections, both ways, and then closes both. It reads from a side only as
// fast as the other side takes the bytes: in each direction at most Limits.Read and Limits.High bytes are under way. The end of one
// direction is passed on while the other goes on. It is Done when both have ended. If one of the connections breaks, it aborts the
// other and fails. It has the connections from the first turn on, and during a shutdown it goes on until both sides have closed.
func Join(a, b *Conn) act.Action {
	return &join{a: a, b: b, there: pipe{from: a, to: b}, back: pipe{from: b, to: a}}
}

type join struct {
	a, b        *Conn
	there, back pipe
}

func (j *join) Act(t *act.Task) act.Directive {
	there, back := j.there.Act(t), j.back.Act(t)
	switch {
	case there == act.Failed || back == act.Failed: // not act.All, which would wait for the other
		_ = j.Close()
		return act.Failed
	case there == act.Done && back == act.Done:
		_, _ = j.a.Close(), j.b.Close()
		return act.Done
	case there == act.Yield || back == act.Yield:
		return act.Yield
	}
	return act.Wait
}

// Close aborts connections that have not been closed.
func (j *join) Close() error {
	j.a.Abort()
	j.b.Abort()
	return nil
}

// Describe implements act.Describer.
func (j *join) Describe(d *act.Description) {
	d.Of(j.a)
	d.Of(j.b)
}

// pipe is one direction.
type pipe struct {
	from, to *Conn
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
		return Next(t, err)
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
