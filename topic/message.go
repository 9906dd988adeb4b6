package topic

import "sync/atomic"

// Publication is what a program publishes.
type Publication struct {
	Topic string
	Data  []byte // must not be changed afterwards
	// Retain makes the message the retained one of its topic: later subscriptions begin with it. With empty Data the topic has
	// none from then on.
	Retain bool
	// Tag is for the program, such as the type of a WebSocket message or a quality of service.
	Tag byte
}

// Kind is what a Message says.
type Kind uint8

const (
	Published Kind = iota // somebody has published it
	Followed              // the subscription follows Topic from Position on: see [Subscription.Follow]
	Joined                // Member is present in Topic: see [Rule]
	Left                  // Member is no longer present in Topic
	batch                 // no message: it only brings others
)

// Message is what a [Subscription] gets. All subscriptions share it, so nobody may change it. Any goroutine.
type Message struct {
	Topic    string
	Data     []byte
	Position // in the history of Topic; zero without a history
	Kind     Kind
	Tag      byte // of the Publication
	Retained bool // it was published before the subscription began, and retained
	// Complete says of a Followed message that all messages since the Position that Follow was given come next.
	Complete bool

	seq    uint64 // the order of the Broker
	framed atomic.Pointer[framed]
	more   *more
}

// more is what few messages have.
type more struct {
	member   Member
	messages []*Message // which the subscription gets after this one
}

// Member returns the member that a Joined or Left message is about.
func (m *Message) Member() Member {
	if m.more == nil {
		return Member{}
	}
	return m.more.member
}

// Position is a place in the history of a topic. Messages have ascending offsets without a gap, from 1 on, within an epoch. A
// topic whose history was lost has another epoch. The zero Position is before every history.
type Position struct {
	Epoch  string
	Offset uint64
}

// Framing makes what a protocol sends for a message: once for each message, however many connections it goes to. Make one with
// [NewFraming], as a package variable.
type Framing[T any] struct{ frame func(*Message) T }

// NewFraming returns a Framing that calls frame for a message when it is first wanted. Schedulers that want it at the same
// time may each call frame.
func NewFraming[T any](frame func(*Message) T) *Framing[T] { return &Framing[T]{frame} }

// Of returns what frame has returned for m. Any goroutine.
func (f *Framing[T]) Of(m *Message) T {
	first := m.framed.Load()
	for x := first; x != nil; x = x.next {
		if x.by == any(f) {
			return x.value.(T)
		}
	}
	v := f.frame(m)
	m.framed.CompareAndSwap(first, &framed{f, v, first}) // if another has come between, this one is made again
	return v
}

// framed is a list of what framings have made of a message.
type framed struct {
	by    any
	value any
	next  *framed
}
