package topic

import (
	"context"
	"time"
)

// Engine connects the Brokers of several machines. A Broker calls its methods on goroutines other than the schedulers'; they
// may block. They try again what fails for a while, such as while a database is away, until ctx ends: so an error means that
// it would be of no use. The module topic/postgres has one.
type Engine interface {
	// Publish stores messages, each once and in this order, and returns their Positions.
	Publish(ctx context.Context, messages []Publication) ([]Position, error)
	// Feed calls deliver with what is stored on any machine, from the first call of deliver on, until ctx ends: each message
	// once, by ascending offsets in each topic, and what one machine has published in its order. The first calls bring the
	// retained messages. If Feed may have missed something it returns an error, and is called again.
	// The Engine may delete what the rules, which the Broker has, do not ask for.
	Feed(ctx context.Context, rules []Rule, deliver func([]Stored)) error
	// History returns the latest messages of a topic that its Rule keeps, without a gap, and the Position of the last message
	// of the topic: an offset of 0 if there was none. It returns after Feed has delivered everything up to that Position.
	History(ctx context.Context, topic string, rule Rule) (messages []Stored, last Position, err error)
	// Change says who has come to topics on this machine, and who has left. The Joined of a Member that is there already changes
	// its Info, and the Left of one that is not there does nothing. In the topic "$presence/" and the name, Feed delivers a
	// Joined when the first machine has a Member, and a Left when no machine has it any more, or all that had it have died.
	Change(ctx context.Context, changes []Change) error
	// Members returns who is present in a topic, on all machines.
	Members(ctx context.Context, topic string) ([]Member, error)
}

// Stored is a message of an Engine.
type Stored struct {
	Publication
	Position
	Age      time.Duration // of a message of History, since it was stored
	Retained bool          // it was stored before Feed was called
	Kind     Kind          // Published, Joined or Left
	Member   Member        // the one that has joined or left
}

// Change is the coming or leaving of a Member.
type Change struct {
	Topic  string
	Kind   Kind // Joined or Left
	Member Member
}
