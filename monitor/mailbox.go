package monitor

import (
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// ErrMailboxClosed is returned when a closed Mailbox is empty.
var ErrMailboxClosed = errors.New("monitor: the mailbox is closed")

// Mailbox takes values from any goroutine to one task at a time. It is bounded, and values of one sender
// keep their order. A task that waits at a Mailbox holds Run; values that nobody takes do not.
type Mailbox[T any] struct {
	values *inbox.Ring[T]
	bell   act.AtomicWaker
}

// NewMailbox returns one that holds at least capacity values: the next power of two.
func NewMailbox[T any](capacity int) *Mailbox[T] {
	return &Mailbox[T]{values: inbox.NewRing[T](capacity)}
}

// Send leaves v and wakes who waits. It never blocks: false means that the Mailbox is full or closed,
// and v is the caller's. Any goroutine.
func (m *Mailbox[T]) Send(v T) bool {
	if !m.values.Push(v) {
		return false
	}
	m.bell.Wake()
	return true
}

// Close refuses further values; those that are there can still be taken. Any goroutine.
func (m *Mailbox[T]) Close() {
	m.values.Close()
	m.bell.Wake()
}

// Take takes the oldest value. When there is none it returns an error that knows whom to arm (see
// listener.Next), or ErrMailboxClosed. It belongs to the thread of the one task that takes.
func (m *Mailbox[T]) Take() (v T, err error) {
	closed := m.values.Closed() // before looking: what came before the Close is found
	if v, ok := m.values.Pop(); ok {
		return v, nil
	}
	if closed {
		return v, ErrMailboxClosed
	}
	return v, (*emptyMailbox[T])(m)
}

// emptyMailbox is a Mailbox as the error that says that it is empty: no allocation for a wait.
type emptyMailbox[T any] Mailbox[T]

func (m *emptyMailbox[T]) Error() string { return "monitor: the mailbox is empty" }

// Arm lets the next Send wake t.
func (m *emptyMailbox[T]) Arm(t *act.Task) {
	w := t.Waker()
	m.bell.Set(w)
	if m.values.Closed() || !m.values.Empty() {
		w.Wake() // it came between
	}
}
