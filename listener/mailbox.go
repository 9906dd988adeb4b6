package listener

import (
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// ErrMailboxClosed is returned by Send to a closed Mailbox, and by Take when it is empty as well.
var ErrMailboxClosed = errors.New("listener: the mailbox is closed")

// Mailbox carries values from any goroutine to one task at a time. It is bounded, and values of one sender keep their
// order. A task that waits at a Mailbox keeps [act.Scheduler.Run] from returning; values that are not taken do not.
type Mailbox[T any] struct {
	values *inbox.Ring[T]
	taker  act.AtomicWaker
	room   inbox.Room[act.RemoteWaker]
}

// NewMailbox returns a Mailbox for at least capacity values: the next power of two.
func NewMailbox[T any](capacity int) *Mailbox[T] {
	return &Mailbox[T]{values: inbox.NewRing[T](capacity)}
}

// Send adds v and wakes the waiting task. It never blocks. If the Mailbox is full, the error is an [act.Blocked], for a
// task that waits until there is room; if it is closed, [ErrMailboxClosed]. After an error v was not taken. Any goroutine.
func (m *Mailbox[T]) Send(v T) error {
	if !m.values.Push(v) {
		if m.values.Closed() {
			return ErrMailboxClosed
		}
		return (*fullMailbox[T])(m)
	}
	m.taker.Wake()
	return nil
}

// Close makes the Mailbox refuse further values; those that are in it can still be taken. Any goroutine.
func (m *Mailbox[T]) Close() {
	m.values.Close()
	m.taker.Wake()
	m.room.Announce()
}

// Take takes the oldest value. Without one the error is an [act.Blocked], or [ErrMailboxClosed]. It is for the one task
// that takes, on its thread.
func (m *Mailbox[T]) Take() (v T, err error) {
	closed := m.values.Closed() // before looking: what came before the Close is found
	if v, ok := m.values.Pop(); ok {
		m.room.Announce()
		return v, nil
	}
	if closed {
		return v, ErrMailboxClosed
	}
	return v, (*emptyMailbox[T])(m)
}

// Describe says what a task waits for that is to take a value.
func (m *Mailbox[T]) Describe(d *act.Description) { d.WaitsFor(fmt.Sprintf("a value in a %T", m)) }

// fullMailbox is a Mailbox as the error that says that it is full.
type fullMailbox[T any] Mailbox[T]

func (m *fullMailbox[T]) Error() string { return "listener: the mailbox is full" }

func (m *fullMailbox[T]) Describe(d *act.Description) {
	d.WaitsFor(fmt.Sprintf("room in a %T", (*Mailbox[T])(m)))
}

// Arm makes the next Take wake t.
func (m *fullMailbox[T]) Arm(t *act.Task) { m.room.Add(t.Waker().Remote(), m.values.Full) }

// emptyMailbox is a Mailbox as the error that says that it is empty: no allocation for a wait.
type emptyMailbox[T any] Mailbox[T]

func (m *emptyMailbox[T]) Error() string { return "listener: the mailbox is empty" }

func (m *emptyMailbox[T]) Describe(d *act.Description) { (*Mailbox[T])(m).Describe(d) }

// Arm makes the next Send wake t.
func (m *emptyMailbox[T]) Arm(t *act.Task) {
	w := t.Waker()
	m.taker.Set(w)
	if m.values.Closed() || !m.values.Empty() {
		w.Wake() // it came between
	}
}
