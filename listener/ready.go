package listener

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// Ready is an action that waits until a watched descriptor may be read, or with Output until it may be written to. When
// it is Done, read or write until EAGAIN (see [monitor.Watched.Readable]); then it may be called again. When the
// watch is closed it fails, as [monitor.Watched.Close] says. During shutdown it goes on waiting.
type Ready struct {
	Of     *monitor.Watched // the descriptor to wait for
	Output bool             // true to wait for room to write, false to wait for input

	blocked error // of the latest turn
}

// Act returns Done when the descriptor was reported ready, Wait until then, and Failed when the watch was closed.
func (r *Ready) Act(t *act.Task) act.Directive {
	take := r.Of.Readable
	if r.Output {
		take = r.Of.Writable
	}
	if r.blocked = take(); r.blocked != nil {
		return Next(t, r.blocked)
	}
	return act.Done
}

// Describe implements [act.Describer]: it names the descriptor that the task waits for.
func (r *Ready) Describe(d *act.Description) { d.Of(r.blocked) }
