package topic

import "context"

// Engine connects the Brokers of several machines. A Broker calls its methods on goroutines of its own; they may block until ctx
// ends. The module topic/postgres has one.
type Engine interface {
	// Publish stores messages, and returns their Positions, in the same order. After an error none of them was stored, or it
	// is not known whether they were.
	Publish(ctx context.Context, messages []Publication) ([]Position, error)
	// Feed calls deliver with what was stored on any machine since Feed was called, until ctx ends: the messages of one topic by
	// ascending offsets, each once. First it delivers the retained message of each topic.
	Feed(ctx context.Context, deliver func([]Stored)) error
	// History returns the messages of a topic after an offset, at most the latest of them that its Rule keeps, and the Position
	// of the last message of the topic.
	History(ctx context.Context, topic string, after uint64, rule Rule) (messages []Stored, last Position, err error)
	// Change says who has come to topics on this machine, and who has left. Feed delivers that, to all machines, as Joined and
	// Left: also of a machine that has died.
	Change(ctx context.Context, changes []Change) error
	// Members returns who is present in a topic, on all machines.
	Members(ctx context.Context, topic string) ([]Member, error)
}

// Stored is a message of an Engine.
type Stored struct {
	Publication
	Position
	Kind   Kind   // Published, Joined or Left
	Member Member // who has joined or left
}

// Change is the coming or leaving of a Member.
type Change struct {
	Topic  string
	Kind   Kind // Joined or Left
	Member Member
}
