package listener

import "github.com/daimon-go/daimon/act"

// handover keeps a new connection until somebody takes it. Meanwhile it is the task's: a leaf may be
// closed as soon as it is Done (act.Seq and its kind do so), which must not cost the connection; and if
// the task ends before anybody takes it, nobody else would close it.
type handover struct {
	conn *Conn
	task *act.Task
}

func (h *handover) offer(t *act.Task, c *Conn) {
	h.conn, h.task = c, t
	t.Own(h)
}

func (h *handover) take() *Conn {
	c := h.conn
	if c != nil {
		h.task.Release(h)
		h.conn = nil
	}
	return c
}

// Close is called by the task that ends.
func (h *handover) Close() error {
	if h.conn != nil {
		h.conn.Abort()
		h.conn = nil
	}
	return nil
}
