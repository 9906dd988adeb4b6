package act

import (
	"time"

	"github.com/daimon-go/daimon/internal/facts"
)

// Describer is an action that says what it waits for. The description is logged when a shutdown waits for the task or
// drops it; it is in the shutdown.Cut that Run returns, and on the pages of package inspect. Parts of an action, such
// as a connection, can be Describers too.
//
// Describe is called on the scheduler's thread, only on request, between two turns and perhaps before the first; not
// while a function runs that the action has offloaded (Async). It must not block, wake or change anything. It need not
// mention timers of the task: the scheduler knows them.
type Describer interface {
	// Describe adds to d what the action waits for, by calls of its WaitsFor and Of. It must not block.
	Describe(d *Description)
}

// Description collects the name of a [Describer] and what it waits for. The scheduler makes one and gives it to Describe, which
// sets Name, and calls WaitsFor and Of.
type Description struct {
	// Name is a name of the action for the pages of package inspect. It must not contain anything that clients have
	// chosen, such as the path of a request. "" stands for the [Name] of the action.
	Name string

	said details
}

// WaitsFor adds something that has to happen before the action can go on, in a few words: "an answer of the store". A
// repeated text counts once.
func (d *Description) WaitsFor(what string) { d.Internals().Waits.Add(what) }

// Of adds what a part of the action waits for, such as a child or a connection. It reports whether the part is a
// [Describer]; if not, it adds nothing. To forward everything that another action says, as [Child] does, call its
// Describe instead.
func (d *Description) Of(part any) bool {
	x, ok := part.(Describer)
	if ok {
		whole := *d
		whole.said.Waits = d.Internals().Waits
		x.Describe(d)
		*d = whole
	}
	return ok
}

func describe(a any) (d Description) {
	if x, ok := a.(Describer); ok {
		x.Describe(&d)
	}
	return d
}

// details is what Daimon's own connections add, as values: a scheduler that is asked about very many of them makes no
// texts, and allocates nothing while there is room in Waits.
type details struct {
	Peer   facts.Address
	Unread int           // bytes that were received and not taken
	Queued int           // bytes that were written and the kernel has not taken
	Still  time.Duration // for how long no byte has gone either way; less than 0: not known
	Stuck  time.Duration // for how long the kernel has taken none of the queued bytes
	Waits  *facts.Waits
}

// Internals is for Daimon's own packages, as [Scheduler.Internals] is. It is not part of the API.
func (d *Description) Internals() *details {
	if d.said.Waits == nil {
		d.said.Waits = facts.MakeWaits(0)
	}
	return &d.said
}

// Reset empties the description. From then on it adds to w.
func (x *details) Reset(w *facts.Waits) { *x = details{Waits: w} }
