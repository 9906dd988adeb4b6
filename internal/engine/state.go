package engine

// State is what package sim sees of a connection of the readiness engine.
type State struct {
	FD             int
	In             bool // there may be something to receive
	Reader, Writer bool // a task waits for input, for room
	Queued         int  // bytes that the kernel has not taken yet
	Gathered       bool // others are sent at the end of the pass
	Held           int  // the memory that they take, at least; of a message to several peers, its part of that
	Dialing        bool // the reader waits for the connection
	ForEnd         bool // the reader waits for the end, and not for input
	Half           bool // the peer is known to have closed its side
}

// Audited is the readiness engine of a scheduler, as a value of an act.Local.
type Audited interface {
	// EachState calls visit for each open connection.
	EachState(visit func(State))
	// Strays returns how much of the memory for receives ahead belongs to no connection and is not free: 0.
	Strays() int
}
