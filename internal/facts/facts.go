// Package facts has what Daimon's packages report of themselves to packages act and inspect: values, and the interfaces to ask
// for them.
package facts

import "time"

// Rest is how a thread that had nothing to do has spent its time.
type Rest uint8

// The ways to rest.
const (
	Asleep  Rest = iota // in the operating system, which wakes it
	Pausing             // for a fixed time, and then it polls
	Polling             // using the CPU
)

// Idler is where a scheduler's thread sleeps and polls the operating system for events. Each scheduler has one. The first one
// only sleeps; the engine of package monitor, which polls descriptors, replaces it.
type Idler interface {
	// Idle sleeps until an event or an Interrupt comes, or until atMost has passed: 0 polls without sleeping, less than
	// 0 sets no limit. It may return early for no reason. It is called on the scheduler's thread.
	Idle(atMost time.Duration)
	// Interrupt makes the current call of Idle return, or the next one if there is none. Any goroutine.
	Interrupt()
}

// Resting is an Idler that does not always sleep in the operating system. Its method is called on the scheduler's thread.
type Resting interface {
	// Rest returns how the latest Idle that could wait was spent.
	Rest() Rest
}

// EndOf is how a wait begins that is for the end of a peer: many actions that wait for something else notice it.
const EndOf = "the end of "

// Lister is an action or an act.Local's value that stands for more than one task. List calls visit with a row for each of
// them: a *[Process], a *[Service], a *[Packets], a *[Stages], a *[Route] or a *[Backend], valid during the call. It ends when visit returns false, and then reports
// whether there may be more: a further call, with again unset, goes on after the last one. With again set it begins anew.
// Only one such series is under way on a scheduler at a time.
type Lister interface {
	// List calls visit with rows until it returns false or there are none left. more reports which.
	List(again bool, visit func(row any) bool) (more bool)
}

// Process is a process of package process.
type Process struct {
	ID       uint64        `json:"id"`                 // unique in its System
	Name     string        `json:"name,omitempty"`     // empty: it was spawned without one
	Kind     string        `json:"kind"`               // of its action: the name of a function, or a type
	State    string        `json:"state"`              // sleeping, queued, running or blocked
	Mailbox  int           `json:"mailbox"`            // messages in it
	Limit    int           `json:"limit,omitempty"`    // 0: none
	Dropped  uint64        `json:"dropped,omitempty"`  // messages to it that were dropped
	Restarts int           `json:"restarts,omitempty"` // by its supervisor
	Turn     time.Duration `json:"turn,omitempty"`     // how long the last turn took that was timed; 0: none was yet
}

// Service is a service of package service on one scheduler.
type Service struct {
	Name string `json:"name"`          // or its address
	Max  int    `json:"max,omitempty"` // MaxConns, of all schedulers; 0: no bound
	Open int    `json:"open"`          // of all schedulers, lingering connections included

	// Of this scheduler, since the service began.
	Accepted  uint64 `json:"accepted"`  // connections
	Full      uint64 `json:"full"`      // pauses of accepting for want of a place
	Shortages uint64 `json:"shortages"` // and of descriptors, memory or permission
	Refused   uint64 `json:"refused"`   // connections that a filter has refused
	TooMany   uint64 `json:"too_many"`  // of these: their source had too many connections
	TooFast   uint64 `json:"too_fast"`  // of these: their source made connections too fast
	Evicted   uint64 `json:"evicted"`   // idle connections that were closed to make room for others
	Gone      uint64 `json:"gone"`      // connections that ended because the peer, or the way to it, had gone
	Failed    uint64 `json:"failed"`    // connections whose action has failed otherwise
}

// Packets is a service for datagrams on one scheduler.
type Packets struct {
	Name  string `json:"name"`  // its address
	Peers int    `json:"peers"` // tasks of conversations

	// Packets of this scheduler, since the service began.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	Full     uint64 `json:"full"`     // were not sent, since the queue was full
	Refused  uint64 `json:"refused"`  // were not sent, since the kernel refused them
	Dropped  uint64 `json:"dropped"`  // were dropped by the kernel, since its buffer was full
	TooFast  uint64 `json:"too_fast"` // were not admitted
	Lost     uint64 `json:"lost"`     // were for a conversation that had no room for them, or could not be begun
	Late     uint64 `json:"late"`     // came when the service was ending
	Evicted  uint64 `json:"evicted"`  // conversations that were ended to make room for others
	Panics   uint64 `json:"panics"`   // of the handler
}

// Stages is an engine of package stage.
type Stages struct {
	Worker  string   `json:"worker"`  // the name of the engine in its store
	Kinds   []string `json:"kinds"`   // the kinds of tasks that it works on
	Workers int      `json:"workers"` // how many tasks it works on at a time
	Running []string `json:"running"` // the tasks that it works on, with their stages
	Waits   []string `json:"waits"`   // what the engine waits for

	Claimed   uint64 `json:"claimed"`   // tasks
	Finished  uint64 `json:"finished"`  // stages
	Failed    uint64 `json:"failed"`    // attempts at a stage
	Suspended uint64 `json:"suspended"` // tasks that were given back as suspended
	Lost      uint64 `json:"lost"`      // leases
}

// Route is a route of package gateway.
type Route struct {
	Name     string `json:"name"`     // its host and path
	Group    string `json:"group"`    // of back ends
	Active   uint64 `json:"active"`   // requests under way
	Requests uint64 `json:"requests"` // all of them
	Failed   uint64 `json:"failed"`   // were answered with a status of 5xx
	Retries  uint64 `json:"retries"`  // of requests, by another back end
}

// Backend is a back end of a group of package gateway.
type Backend struct {
	Name     string        `json:"name"`     // its group and address
	State    string        `json:"state"`    // in use, coming back or left out
	Active   uint64        `json:"active"`   // requests under way
	Requests uint64        `json:"requests"` // all of them, with retries
	Failed   uint64        `json:"failed"`   // had no answer, or a status that counts as a failure
	Outs     uint64        `json:"outs"`     // how often it was left out
	Took     time.Duration `json:"took"`     // all requests together
}
