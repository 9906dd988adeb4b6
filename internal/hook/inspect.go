package hook

import "time"

// The interfaces of this file say what a program is doing. They are asked on the scheduler's thread, between two turns, and
// only when somebody wants to know: nothing is kept for them. What cannot be known is left out.

// Counter is an act.Local's value that counts. Counts calls add for each count. A name has lower-case words with underscores;
// one that ends in _total only grows, and any other is of this moment. Counts of one name are added up, also of schedulers.
type Counter interface {
	Counts(add func(name string, n uint64))
}

// Waiting is an action, or something that an action waits with, such as a connection. Waits calls add for each thing that can
// go on only when something else has happened, in a few words: "input from 127.0.0.1:5". Timers of the task are not among
// them, since the scheduler knows those; what a timer is for may be. A parent asks its children, with [AskWaits]. A [Valued] is one
// that makes no texts.
//
// It is not called in a turn of the task, nor while a function runs that the action has offloaded (Async).
type Waiting interface {
	Waits(add func(what string))
}

// AskWaits calls the Waits of a, an act.Action or another part of one. If a has none, it asks what a forwards to as act.Child
// does. It reports whether anybody was asked.
func AskWaits(a any, add func(what string)) bool {
	w := MakeWaits(0)
	asked := AskValues(a, w)
	for _, what := range w.Texts(0, w.Len()) {
		add(what)
	}
	return asked
}

// Rest is how a thread that had nothing to do has spent its time.
type Rest uint8

// The ways to rest.
const (
	Asleep  Rest = iota // in the operating system, which wakes it
	Pausing             // for a fixed time, and then it looks
	Looking             // using the CPU
)

// Resting is an act.Idler that does not always sleep in the operating system. Rest says how the latest Idle that could wait
// was spent. It is called on the scheduler's thread.
type Resting interface {
	Rest() Rest
}

// Descriptor is an action that serves a connection, or a part of one, such as its Stream. Descriptor returns the number of the file
// descriptor, -1 if there is none. It may be called at the beginning of each turn, and while an offloaded function runs.
type Descriptor interface {
	Descriptor() int
}

// Connected is an action that serves a connection. Connection returns what there is to see of it; false if it is closed.
type Connected interface {
	Connection() (Connection, bool)
}

// Connection is a connection as its Connected sees it.
type Connection struct {
	Peer   Address
	Unread int           // bytes that were received and not taken
	Queued int           // bytes that were written and the system has not taken
	Still  time.Duration // for how long no byte has gone either way; less than 0: not known
	Stuck  time.Duration // for how long the system has taken none of what is queued
}

// EndOf is how a Waits begins that adds the end of a peer, which many actions notice that wait for something else.
const EndOf = "the end of "

// Redacter is an action whose String may have something of its clients' data, such as the path of a request. Redacted returns a name
// without it. It is called when Waits may be.
type Redacter interface {
	Redacted() string
}

// Redacted returns the Redacted of a, or of what it forwards to as act.Child does; false if none has one.
func Redacted(a any) (name string, ok bool) {
	for ; a != nil; a = Child(a) {
		if x, ok := a.(Redacter); ok {
			return x.Redacted(), true
		}
	}
	return "", false
}

// Stiller is an action that serves a connection, or a Closing. Still is that of its Connection, and costs no system call.
type Stiller interface {
	Still() time.Duration
}

// Sticking is a Stream that knows for how long the system has taken none of what is queued. Stuck returns that, 0 if nothing is
// queued.
type Sticking interface {
	Stuck() time.Duration
}

// Closing is a connection that was closed and is not gone: its last bytes are on their way, or its peer has not closed.
type Closing interface {
	Stiller
	// Closing returns what there is to see of it. It is called in EachClosing's visit, or in the same turn.
	Closing() Lingering
}

// Lingering is a connection as its Closing sees it.
type Lingering struct {
	Connection
	Local string        // the address of this side
	Left  time.Duration // until it is cut off
}

// Lingerer is an act.Local's value that has Closings. EachClosing calls visit for those in n places, from the place from on, and
// returns where to go on, 0 at the end. It is called on the scheduler's thread.
type Lingerer interface {
	EachClosing(from, n int, visit func(Closing)) (next int)
}

// Serving is an action that belongs to a service. Service returns its name, such as "tcp 127.0.0.1:8080". It may be called
// while an offloaded function runs.
type Serving interface {
	Service() string
}

// Undisturbed is the action of a task that is not to know of orders: act.Task.Order returns nil. Its own Stop is called.
type Undisturbed interface {
	Undisturbed() bool
}

// Deaf reports whether a, the action of a task, is Undisturbed.
func Deaf(a any) bool {
	u, ok := a.(Undisturbed)
	return ok && u.Undisturbed()
}

// Lister is an action or an act.Local's value that stands for more than one task. List calls visit with a row for each of
// them: a *[Process], a *[Service] or a *[Stages], valid during the call. It ends when visit returns false, and then reports
// whether there may be more: a further call, with again unset, goes on behind what was visited. With again set it begins anew.
// Only one such series is under way on a scheduler at a time.
type Lister interface {
	List(again bool, visit func(row any) bool) (more bool)
}

// Process is a process of package process.
type Process struct {
	ID      uint64        `json:"id"`
	Name    string        `json:"name,omitempty"`
	Kind    string        `json:"kind"`              // of its action: the name of a function, or a type
	State   string        `json:"state"`             // sleeping, queued, running or blocked
	Mailbox int           `json:"mailbox"`           // messages in it
	Limit   int           `json:"limit,omitempty"`   // 0: none
	Dropped uint64        `json:"dropped,omitempty"` // messages to it that were dropped
	Turn    time.Duration `json:"turn,omitempty"`    // how long the last turn took that was timed; 0: none was yet
}

// Limited is the error of a connection that a filter refuses because of what its source has already, or because of how fast
// it comes again.
type Limited interface {
	error
	TooFast() bool
}

// Service is a service of package service on one scheduler.
type Service struct {
	Name string `json:"name"`
	Max  int    `json:"max,omitempty"` // MaxConns, of all schedulers; 0: no bound
	Open int    `json:"open"`          // of all schedulers, lingering connections included

	// Of this scheduler, since the service began.
	Accepted  uint64 `json:"accepted"`
	Full      uint64 `json:"full"`      // pauses of accepting for want of a place
	Shortages uint64 `json:"shortages"` // and of descriptors, memory or permission
	Refused   uint64 `json:"refused"`   // connections that a filter has refused
	TooMany   uint64 `json:"too_many"`  // of these: their source had too many connections
	TooFast   uint64 `json:"too_fast"`  // of these: their source made connections too fast
	Reclaimed uint64 `json:"reclaimed"` // idle connections that were closed to make room for others
	Gone      uint64 `json:"gone"`      // connections that ended because the peer, or the way to it, had gone
	Failed    uint64 `json:"failed"`    // connections whose action has failed otherwise
}

// Stages is an engine of package stage.
type Stages struct {
	Worker  string   `json:"worker"`
	Kinds   []string `json:"kinds"`
	Workers int      `json:"workers"`
	Running []string `json:"running"` // the tasks that it works on, with their stages
	Waits   []string `json:"waits"`   // what the engine waits for

	Claimed   uint64 `json:"claimed"`   // tasks
	Finished  uint64 `json:"finished"`  // stages
	Failed    uint64 `json:"failed"`    // attempts at a stage
	Suspended uint64 `json:"suspended"` // tasks that were given back as suspended
	Lost      uint64 `json:"lost"`      // leases
}
