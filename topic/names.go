package topic

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/daimon-go/daimon/act"
)

// ErrTaken says that another claim has a name, or waits for it: see [Names].
var ErrTaken = errors.New("topic: another has the name")

// Names are names with one owner each, such as identifiers of clients or users, over all schedulers. T is what others find under
// a name. The zero Names is empty and ready to use. A Names must not be copied. Any goroutine may call its methods; an Owner
// calls them in its turn.
//
// A name never has two owners. [Names.TakeOver] tells the present owner, which should end; its successor owns the name when the
// present owner's claim has ended. There is no bound of time for that. A task that does not want to wait for ever puts the
// action that calls [Claim.Acquire] into listener.Within. If a further claim comes while the successor waits, it takes the
// successor's place, and the successor is told.
type Names[T any] struct {
	mu     sync.Mutex // held for a few instructions
	claims map[string]claims[T]
}

// claims has the claims of a name that has an owner. next waits for the name; nil: none does.
type claims[T any] struct{ owner, next *Claim[T] }

// Claim is a claim of a name: it owns the name, waits for it, or has lost it. It ends with its [Owner], before the action of that
// is closed. Its methods are for the Owner; of a closed Claim they return [ErrClosed].
type Claim[T any] struct {
	of    *Names[T]
	name  string
	value T
	waker act.AtomicWaker
	owner interface{ Release(io.Closer) bool } // nil: a goroutine
	tell  func()                               // of the owner or the loss of the name; nil: nobody. Under the lock, as is lost
	lost  error                                // why it has no right to the name, or will have none; nil: it has
}

// Register claims a name that has no owner. If the name has one, Register returns [ErrTaken].
func (n *Names[T]) Register(owner Owner, name string, value T) (*Claim[T], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.claims[name].owner != nil {
		return nil, ErrTaken
	}
	return n.claim(owner, name, value), nil
}

// TakeOver claims a name, and tells its present owner. A goroutine has no Owner: it passes nil, and closes the claim. A process
// is poked when a method of its claim no longer returns an act.Blocked.
func (n *Names[T]) TakeOver(owner Owner, name string, value T) *Claim[T] {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.claim(owner, name, value)
}

func (n *Names[T]) claim(owner Owner, name string, value T) *Claim[T] {
	c := &Claim[T]{of: n, name: strings.Clone(name), value: value}
	if p, ok := owner.(process); ok {
		c.tell = p.Poke
	}
	if owner != nil {
		owner.Own(c)
		c.owner, _ = owner.(interface{ Release(io.Closer) bool })
	}
	if n.claims == nil {
		n.claims = map[string]claims[T]{}
	}
	x := n.claims[name]
	if x.owner == nil {
		x.owner = c
	} else {
		x.owner.lose(ErrTaken)
		if x.next != nil {
			x.next.lose(ErrTaken)
		}
		x.next = c
	}
	n.claims[c.name] = x
	return c
}

// Lookup returns the value of the owner of a name.
func (n *Names[T]) Lookup(name string) (value T, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.claims[name].owner; c != nil {
		return c.value, true
	}
	return value, false
}

// Acquire returns nil if the claim owns the name, and an act.Blocked while another one owns it. It returns [ErrTaken] if a later
// claim has come.
func (c *Claim[T]) Acquire() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.lost == nil && !c.owns() {
		return (*acquiring[T])(c)
	}
	return c.lost
}

// Lost returns an act.Blocked until a later claim comes. Then it returns [ErrTaken], and the Owner should end: the name is its
// own until it does.
func (c *Claim[T]) Lost() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.lost == nil {
		return (*losing[T])(c)
	}
	return c.lost
}

// AcquireWait is Acquire for a goroutine that may block, never for the thread of a scheduler: it waits until the claim owns the
// name, or ctx ends. The returned context ends when a later claim comes, with [ErrTaken] as its cause, and with Close.
func (c *Claim[T]) AcquireWait(ctx context.Context) (context.Context, error) {
	owning, cancel := context.WithCancelCause(ctx)
	acquired := make(chan struct{})
	c.of.mu.Lock()
	c.tell = func() {
		if c.lost != nil {
			cancel(c.lost)
		} else if c.owns() {
			close(acquired)
		}
	}
	c.tell()
	c.of.mu.Unlock()
	select {
	case <-acquired:
		return owning, nil
	case <-owning.Done():
		return nil, context.Cause(owning)
	}
}

// Close ends the claim. If it owns the name, the claim that waits for the name gets it. A goroutine needs it.
func (c *Claim[T]) Close() error {
	if c.owner != nil {
		c.owner.Release(c)
	}
	n := c.of
	n.mu.Lock()
	defer n.mu.Unlock()
	c.lose(ErrClosed)
	switch x := n.claims[c.name]; {
	case c == x.next:
		n.claims[c.name] = claims[T]{owner: x.owner}
	case c == x.owner && x.next != nil:
		n.claims[c.name] = claims[T]{owner: x.next}
		x.next.wake()
	case c == x.owner:
		delete(n.claims, c.name)
	}
	return nil
}

func (c *Claim[T]) owns() bool { return c.of.claims[c.name].owner == c }

func (c *Claim[T]) lose(why error) {
	if c.lost == nil {
		c.lost = why
		c.wake()
	}
}

func (c *Claim[T]) wake() {
	c.waker.Wake()
	if c.tell != nil {
		c.tell()
	}
}

// arm wakes t when call no longer returns an act.Blocked.
func (c *Claim[T]) arm(t *act.Task, call func() error) {
	c.waker.Set(t.Waker())
	if _, waits := call().(act.Blocked); !waits {
		t.Waker().Wake() // it has changed since, and may have woken nobody
	}
}

// acquiring is a Claim as the error that another one owns the name.
type acquiring[T any] Claim[T]

func (a *acquiring[T]) Error() string               { return "topic: the owner of the name has not ended" }
func (a *acquiring[T]) Arm(t *act.Task)             { c := (*Claim[T])(a); c.arm(t, c.Acquire) }
func (a *acquiring[T]) Describe(d *act.Description) { d.WaitsFor("the end of the owner of a name") }

// losing is a Claim as the error that no later one has come.
type losing[T any] Claim[T]

func (l *losing[T]) Error() string               { return "topic: no later claim of the name" }
func (l *losing[T]) Arm(t *act.Task)             { c := (*Claim[T])(l); c.arm(t, c.Lost) }
func (l *losing[T]) Describe(d *act.Description) { d.WaitsFor("a later claim of a name") }
