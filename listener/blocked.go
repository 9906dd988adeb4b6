package listener

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/monitor"
)

// blockedInput and its siblings are a Conn as an error, which says that a call would have to wait: no allocation for a
// wait.
type (
	blockedInput    Conn
	blockedOutput   Conn
	blockedEmptying Conn
)

func (*blockedInput) Error() string    { return "listener: nothing to read yet" }
func (*blockedOutput) Error() string   { return "listener: too much is queued to write" }
func (*blockedEmptying) Error() string { return "listener: what was written is not sent yet" }

// Each describes the whole connection.
func (b *blockedInput) Describe(d *act.Description)    { (*Conn)(b).Describe(d) }
func (b *blockedOutput) Describe(d *act.Description)   { (*Conn)(b).Describe(d) }
func (b *blockedEmptying) Describe(d *act.Description) { (*Conn)(b).Describe(d) }

func (b *blockedInput) Arm(t *act.Task) {
	c := (*Conn)(b)
	w := t.Waker()
	if c.stream == nil {
		w.Wake() // closed since: the next call says so
		return
	}
	if b := c.settings.cache.budget; b.Paused() && c.holdsNothing() {
		held, ok := As[budget.Holder](c)
		b.Await(w, (*owner)(c), !ok || !held.Taken()) // later, if the peer has never taken all that was sent to it
		if stream, ok := As[monitor.CloseNotifier](c); ok {
			_, _ = stream.AwaitEnd(w) // deadlines, and Close by another task, wake it as well; an error is the next call's
		}
		return
	}
	c.stream.AwaitInput(w)
}

func (b *blockedOutput) Arm(t *act.Task) { (*Conn)(b).awaitOutput(t, b.settings.limits.Low) }

func (b *blockedEmptying) Arm(t *act.Task) { (*Conn)(b).awaitOutput(t, 0) }

func (c *Conn) awaitOutput(t *act.Task, low int) {
	w := t.Waker()
	if c.stream == nil {
		w.Wake()
		return
	}
	c.stream.AwaitOutput(w, low)
}
