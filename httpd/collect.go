package httpd

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// WithBody makes a Handler of one that wants the body in one piece, of at most so many bytes; 0 means 4 MiB. A longer
// one is answered with 413. What has come with the head is not copied. The body is lent until the turn ends in which
// h is called.
func WithBody(most int, h func(w *Response, r *Request, body []byte) act.Action) Handler {
	if most == 0 {
		most = 4 << 20
	}
	return func(w *Response, r *Request) act.Action {
		if r.Body.Length() > int64(most) {
			return act.Func(func(t *act.Task) act.Directive { return t.Fail(errLarge) })
		}
		in, err := r.Body.Peek()
		if err == io.EOF || err == nil && int64(len(in)) == r.Body.Length() {
			r.Body.Discard(len(in))
			return h(w, r, in)
		}
		return &collector{w: w, r: r, most: most, h: h}
	}
}

// atFirst is how much of a body there is room for before it has come: what costs memory is octets, not the announcement.
const atFirst = 64 << 10

// collector gathers a body, and goes on as what its handler makes of it.
type collector struct {
	w    *Response
	r    *Request
	most int
	h    func(w *Response, r *Request, body []byte) act.Action
	body []byte
	next act.Action
}

func (c *collector) Act(t *act.Task) act.Directive {
	for c.next == nil {
		in, err := c.r.Body.Peek()
		switch {
		case err == io.EOF:
			if c.next = c.h(c.w, c.r, c.body); c.next == nil {
				return act.Done
			}
			if o := t.Order(); o != nil {
				c.Stop(t, o) // it was told before there was an action to pass that on to
			}
			c.body = nil
		case err != nil:
			return listener.Next(t, err)
		case len(c.body)+len(in) > c.most:
			return t.Fail(errLarge)
		}
		if c.body == nil && c.r.Body.Length() > 0 {
			c.body = make([]byte, 0, min(c.r.Body.Length(), atFirst))
		}
		c.body = append(c.body, in...)
		c.r.Body.Discard(len(in))
	}
	return c.next.Act(t)
}

// Stop passes an order on.
func (c *collector) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := c.next.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

// Abandon passes on to the action that the handler has made, which has offloaded something.
func (c *collector) Abandon() act.Action { return act.AbandonAction(c.next) }

// Close closes the action that the handler has made.
func (c *collector) Close() error {
	if cl, ok := c.next.(io.Closer); ok {
		return cl.Close()
	}
	return nil
}
