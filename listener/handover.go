package listener

import "github.com/daimon-go/daimon/act"

// handover keeps a new connection, which the task owns until it is taken: the leaf may be closed before (by act.Seq).
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

// Close aborts a connection that was not taken. The task calls it when it ends.
func (h *handover) Close() error {
	if h.conn != nil {
		h.conn.Abort()
		h.conn = nil
	}
	return nil
}
