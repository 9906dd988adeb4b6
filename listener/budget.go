package listener

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/monitor"
)

// Budget is a set-up function that bounds the memory, in bytes, of what is queued and buffered for the connections of all
// schedulers together. Each scheduler has an equal part. It comes before the set-up functions of services. 0 is the default,
// half of the memory that the process may have: that of the machine, of the control group (cgroup) or GOMEMLIMIT, the least of
// them. Less than 0 is no bound.
//
// What counts is what a connection has between two turns: unread bytes, queued output, and what a [Meter] counts, as
// packages httpd, websocket, secure and nethttp and a [Bridge] do: heads, bodies that are gathered, answers, records and
// handshakes of TLS, parts of messages. It counts as memory: a queue of one byte takes 16 KiB. These do not count: the buffers of
// the system (Limits.ReceiveBuffer and SendBuffer), messages that wait in a websocket.Options.Backlog, bodies of
// httpd.Response.SetBody, what a connection has at rest, such as the state of TLS, and what a program keeps itself. The process
// takes more than what counts. Above all, Go's collector lets the heap grow to twice of what is in use: see GOGC and GOMEMLIMIT.
//
// When the budget of a scheduler is reached, these steps follow each other:
//
//   - Reading pauses until less than 7/8 of the budget is held. Of the connections that hold nothing, 64 are read from in 100 ms,
//     in turn: first those whose peers have taken all that was sent to them at some time, then the others. Those that hold
//     something go on: to read on may be what ends it, as with the rest of a request.
//   - While it pauses, every 100 ms, the worst connections are aborted on which no byte has gone either way for a second, until
//     less than 7/8 is held.
//   - If a pause has lasted for 5 s, or more than 5/4 of the budget is held at the end of a turn, other connections are aborted as
//     well, the worst first: until less than 7/8 is held, or no more than the budget. So a pause is over after 5.1 s.
//
// The worst connection is the one with the most bytes times seconds: its memory, times one second more than the time for which no
// byte has gone either way. A connection that is dialled counts, and may be aborted, as one that was accepted. To their tasks it
// looks like Conn.Abort by another task. One line a second in the log says how many they were, with the largest. So between two
// turns a scheduler holds at most 5/4 of its budget.
func Budget(total int) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		switch n := len(s.Group().Schedulers()); {
		case total < 0:
			budget.Of(s).Bound(-1)
		case total > 0:
			budget.Of(s).Bound(max(1, total/n))
		}
		return nil
	}
}

// Meter counts the memory that something keeps for a connection, beside what a Conn keeps itself: a protocol of one's own has one
// for parts of messages. It counts for the budget of the scheduler: see [Budget]. The zero Meter counts nothing yet.
type Meter struct{ bytes int }

// Set says how many bytes are kept now. It is called with the same Conn each time. When that is closed or aborted all of them are
// given back, and from then on Set has no effect. Between two turns the count has to be true.
func (m *Meter) Set(c *Conn, bytes int) {
	more := bytes - m.bytes
	if m.bytes = bytes; more == 0 || c.stream == nil {
		return
	}
	b := c.activate()
	b.held += more
	b.count()
}

// count counts the memory that the connection has.
func (b *buffers) count() {
	b.account.Owner = (*owner)(b.c)
	b.cache.budget.Set(&b.account, cap(b.buffer)+b.held)
}

// release counts none any more.
func (b *buffers) release() {
	if b.held = 0; b.account.Bytes() > 0 {
		b.cache.budget.Set(&b.account, 0)
	}
}

// heldBack reports whether nothing may be received now: the budget is reached, and the connection holds nothing.
func (c *Conn) heldBack() bool {
	return c.settings.cache.budget.Paused() && c.holdsNothing() && !c.settings.cache.budget.Admit((*owner)(c))
}

// untried reports whether it is not known of the peer that it takes what it is sent.
func (c *Conn) untried() bool {
	stream, ok := As[budget.Holder](c)
	return !ok || !stream.Taken()
}

func (c *Conn) holdsNothing() bool {
	return (c.buffers == nil || c.buffers.account.Bytes() == 0) && c.Queued() == 0
}

// claim says that what is queued is held for c, and returns how much memory it takes.
func (c *Conn) claim() (bytes int) {
	if stream, ok := As[budget.Holder](c); ok {
		bytes = stream.HeldFor((*owner)(c))
	}
	return bytes
}

// owner is a Conn as what memory is held for.
type owner Conn

// Held implements budget.Owner.
func (o *owner) Held() (bytes int, still time.Duration) {
	c := (*Conn)(o)
	bytes = c.claim()
	if stream, ok := As[budget.Sharer](c); ok {
		bytes += stream.Parts()
	}
	if c.buffers != nil {
		bytes += c.buffers.account.Bytes()
	}
	if stream, ok := As[monitor.IdleReporter](c); ok {
		since, _ := stream.IdleSince()
		still = max(0, c.Scheduler().Now()-since)
	}
	return bytes, still
}

// Flush implements budget.Owner.
func (o *owner) Flush() error { return (*Conn)(o).Flush() }

// Abort implements budget.Owner.
func (o *owner) Abort() { (*Conn)(o).Abort() }

// Peer implements budget.Owner.
func (o *owner) Peer() string {
	if a := (*Conn)(o).RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}
