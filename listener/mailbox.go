package listener

import (
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/inbox"
)

// ErrMailboxClosed is returned by Send to a closed Mailbox, and by Take from one that is closed and empty.
var ErrMailboxClosed = errors.New("listener: the mailbox is closed")

// Mailbox is a bounded queue that carries values from any goroutine to one task. Values of one sender keep their order.
// A task that waits for a value keeps [act.Scheduler.Run] from returning; values that are not taken do not. [Receive]
// waits for one value. Make it with [NewMailbox].
type Mailbox[T any] struct {
	values *inbox.Ring[T]
	taker  act.AtomicWaker
	room   inbox.Room
}

// NewMailbox returns an empty Mailbox that holds up to capacity values, rounded up to a power of two. Any goroutine.
func NewMailbox[T any](capacity int) *Mailbox[T] {
	return &Mailbox[T]{values: inbox.NewRing[T](capacity)}
}

// Send adds v and wakes the waiting task. It never blocks. If the Mailbox is full, it returns an [act.Blocked], which
// wakes a task when there is room; if the Mailbox is closed, it returns [ErrMailboxClosed]. After an error v was not
// added. Any goroutine.
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

// Close makes Send refuse further values with [ErrMailboxClosed]; values in the Mailbox can still be taken. Any goroutine.
func (m *Mailbox[T]) Close() {
	m.values.Close()
	m.taker.Wake()
	m.room.Announce()
}

// Take removes the oldest value and returns it. If the Mailbox is empty, it returns an [act.Blocked], or
// [ErrMailboxClosed] once it is closed. It is for one task at a time, on its scheduler's thread.
func (m *Mailbox[T]) Take() (v T, err error) {
	closed := m.values.Closed() // before Pop: a value that came before the Close is found
	if v, ok := m.values.Pop(); ok {
		m.room.Announce()
		return v, nil
	}
	if closed {
		return v, ErrMailboxClosed
	}
	return v, (*emptyMailbox[T])(m)
}

// Describe implements [act.Describer], for an action that waits for Take: it names the type of the Mailbox.
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
