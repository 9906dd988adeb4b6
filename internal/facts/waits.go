package facts

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Address is the address of a peer as a value. Its text may be made by another goroutine.
type Address struct {
	TCP  netip.AddrPort // invalid on other networks
	Name string         // of another network
}

// String returns the address as text.
func (a Address) String() string {
	if a.TCP.IsValid() {
		return a.TCP.String()
	}
	return a.Name
}

// AddrPort returns the value of an address of TCP or UDP, and the zero AddrPort for one of another network. An IPv4-mapped
// address (RFC 4291 2.5.5.2) becomes one of IPv4, so that values can be compared.
func AddrPort(addr any) (at netip.AddrPort) {
	if a, ok := addr.(interface{ AddrPort() netip.AddrPort }); ok {
		at = a.AddrPort()
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// Waits are things that are waited for, as values.
type Waits struct{ all Pile[wait] }

type wait struct {
	what   string
	peer   Address      // follows
	source fmt.Stringer // of peer, which is a proxy; nil if it is none
	bytes  int          // of room that is waited for; 0: no room
	timed  bool
	atMost time.Duration
}

// MakeWaits returns Waits with room for n.
func MakeWaits(n int) *Waits { return &Waits{MakePile[wait](n)} }

// Len returns how many there are.
func (w *Waits) Len() int { return w.all.n }

// Add adds a thing in a few words: "input from 127.0.0.1:5".
func (w *Waits) Add(what string) { *w.all.Next() = wait{what: what} }

// AddPeer adds what, followed by the address of a peer.
func (w *Waits) AddPeer(what string, peer Address) {
	*w.all.Next() = wait{what: what, peer: known(peer)}
}

// AddRoom adds that a number of bytes is queued for a peer.
func (w *Waits) AddRoom(bytes int, peer Address) {
	*w.all.Next() = wait{bytes: bytes, peer: known(peer)}
}

// AddTimed adds what, which is waited for as long as that at most.
func (w *Waits) AddTimed(what string, atMost time.Duration) {
	*w.all.Next() = wait{what: what, timed: true, atMost: atMost}
}

// Forwarded says that the waits from a place on have proxies as their peers, by way of which a source is connected.
func (w *Waits) Forwarded(first int, source fmt.Stringer) {
	for i := first; i < w.Len(); i++ {
		if x := w.all.At(i); x.peer != (Address{}) {
			x.source = source
		}
	}
}

func known(peer Address) Address {
	if peer == (Address{}) {
		peer.Name = "its peer"
	}
	return peer
}

func (x *wait) String() string {
	switch {
	case x.bytes > 0:
		return fmt.Sprintf("room: %d bytes queued for %s", x.bytes, x.from())
	case x.timed:
		return fmt.Sprintf("%s, for up to %v", x.what, x.atMost.Round(time.Second))
	case x.peer != Address{}:
		return x.what + x.from()
	}
	return x.what
}

func (x *wait) from() string {
	if x.source != nil {
		return x.source.String() + " by way of " + x.peer.String()
	}
	return x.peer.String()
}

// All returns the Texts of all.
func (w *Waits) All() []string { return w.Texts(0, w.Len()) }

// Truncate forgets those from the place n on.
func (w *Waits) Truncate(n int) { w.all.n = n }

// Texts returns the things from one place on, up to another one: each text once. Any goroutine.
func (w *Waits) Texts(from, to int) (all []string) {
	for i := from; i < to; i++ {
		if text := w.all.At(i).String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// Pile is a list that never moves its elements: copying many would hold up a scheduler. Its room is allocated
// beforehand.
type Pile[T any] struct {
	room []T
	more [][]T // each of piece; for elements beyond room
	n    int
}

// piece is small: a large allocation may have to help the collector for long.
const piece = 128

// MakePile returns a Pile with room for n.
func MakePile[T any](n int) Pile[T] { return Pile[T]{room: make([]T, n)} }

// Next returns the place of a further one.
func (p *Pile[T]) Next() *T {
	if i := p.n - len(p.room); i >= 0 && i/piece == len(p.more) {
		p.more = append(p.more, make([]T, piece))
	}
	p.n++
	return p.At(p.n - 1)
}

// Len returns how many there are.
func (p *Pile[T]) Len() int { return p.n }

// Joined returns all in one list.
func (p *Pile[T]) Joined() []T {
	if p.n <= len(p.room) {
		return p.room[:p.n]
	}
	return slices.Concat(append([][]T{p.room}, p.more...)...)[:p.n]
}

// At returns one of them.
func (p *Pile[T]) At(i int) *T {
	if i < len(p.room) {
		return &p.room[i]
	}
	i -= len(p.room)
	return &p.more[i/piece][i%piece]
}
