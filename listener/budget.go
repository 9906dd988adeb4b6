package listener

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/monitor"
)

// Budget returns a set-up function that bounds the memory, in bytes, for bytes queued and buffered for the connections
// of all schedulers together. Each scheduler has an equal part. Pass it before the set-up functions of services. 0 is
// the default: half of the memory that the program may use, which is the least of the machine's memory, the control
// group's and GOMEMLIMIT. Less than 0 means no bound.
//
// The budget counts what a connection holds between two turns: unread bytes, queued output, and what a [Meter] counts,
// such as heads, gathered bodies, TLS records and parts of messages. The
// packets that wait for a [Peer] count too. It counts memory, not bytes: a queue of one byte takes 16 KiB. It does not count the kernel's buffers (Limits.ReceiveBuffer and SendBuffer), messages that wait in a
// websocket.Options.Backlog, bodies of httpd.Response.SetBody, the state of a connection at rest, and memory of the
// program itself. The program takes more memory than that: Go's collector lets the heap grow to twice the memory in
// use (see GOGC and GOMEMLIMIT).
//
// When the budget of a scheduler is reached, it takes these steps, one after the other:
//
//   - Reading pauses until less than 7/8 of the budget is held. Of the connections that hold nothing, 64 are read in
//     100 ms, in turn: first the ones whose peers have at some time taken all that was sent to them, then the others.
//     Connections that hold something go on reading, which may free memory, as with the rest of a request.
//   - During the pause, every 100 ms, connections on which no byte has gone either way for a second are aborted, the worst
//     first, until less than 7/8 is held.
//   - After 5 s of pause, or if more than 5/4 of the budget is held at the end of a turn, other connections are aborted as
//     well, the worst first, until less than 7/8 is held, or no more than the budget. So a pause ends after 5.1 s.
//
// The worst connection is the one with the most bytes times seconds: its memory, times one second plus the time for
// which no byte has gone either way. Dialled connections count, and may be aborted, like accepted ones. To its task it
// looks as if another task had called Conn.Abort. One log line a second says how many connections were aborted, with
// the largest. So between two turns a scheduler holds at most 5/4 of its budget.
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

// Meter counts memory that a protocol keeps for a connection, in addition to the buffers of the Conn, such as parts of
// messages. It counts towards the [Budget] of the scheduler. The zero Meter counts nothing yet.
type Meter struct{ bytes int }

// Set sets how many bytes are kept now. The count must be right at the end of each turn. Set is called with the same
// Conn each time. When the Conn is closed or aborted, the bytes are given back to the budget, and from then on Set has
// no effect.
func (m *Meter) Set(c *Conn, bytes int) {
	more := bytes - m.bytes
	if m.bytes = bytes; more == 0 || c.stream == nil {
		return
	}
	b := c.activate()
	b.held += more
	b.count()
}

func (b *buffers) count() {
	b.account.Owner = (*owner)(b.c)
	b.cache.budget.Set(&b.account, cap(b.buffer)+b.held)
}

// heldBack reports whether nothing may be received now because the budget is reached and the connection holds nothing.
func (c *Conn) heldBack() bool {
	return c.settings.cache.budget.Paused() && c.holdsNothing() && !c.settings.cache.budget.Admit((*owner)(c))
}

func (c *Conn) holdsNothing() bool {
	return (c.buffers == nil || c.buffers.account.Bytes() == 0) && c.Queued() == 0
}

// claim counts queued bytes as held for c, and returns how much memory they take.
func (c *Conn) claim() (bytes int) {
	if stream, ok := As[budget.Holder](c); ok {
		bytes = stream.HeldFor((*owner)(c))
	}
	return bytes
}

// owner is a Conn as a budget.Owner.
type owner Conn

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

func (o *owner) Flush() error { return (*Conn)(o).Flush() }
func (o *owner) Abort()       { (*Conn)(o).Abort() }

func (o *owner) Peer() string {
	if a := (*Conn)(o).RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}
