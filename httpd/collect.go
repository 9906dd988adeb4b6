package httpd

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// WithBody makes a Handler of a function that wants the whole body in one piece, of at most the given number of bytes; 0
// means 4 MiB. A longer body is answered with 413. A body that has come with the head is not copied. The body is lent
// until the end of the turn in which h is called.
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

// atFirst is how much room is made for a body before it has come: memory is for bytes, not for announcements.
const atFirst = 64 << 10

// collector gathers a body, and then forwards to the action of its handler.
type collector struct {
	act.Child
	w    *Response
	r    *Request
	most int
	h    func(w *Response, r *Request, body []byte) act.Action
	body []byte
	held listener.Meter
}

func (c *collector) Act(t *act.Task) act.Directive {
	for c.Action == nil {
		in, err := c.r.Body.Peek()
		switch {
		case err == io.EOF:
			c.Action = c.h(c.w, c.r, c.body)
			c.free()
			return c.Child.Act(t) // without an action that is Done
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
		c.held.Set(c.r.Conn(), cap(c.body))
	}
	return c.Child.Act(t)
}

// free gives the memory of the body back.
func (c *collector) free() {
	c.body = nil
	c.held.Set(c.r.Conn(), 0)
}

// Close implements io.Closer.
func (c *collector) Close() error {
	c.free()
	return c.Child.Close()
}
