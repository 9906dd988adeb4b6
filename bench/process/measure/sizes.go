package measure

import "time"

// The work of a lap, the same in all programs.
var (
	Trips     = 50_000 // hand-off: round trips
	Flooded   = 50_000 // flood: messages
	Hops      = 1000   // bounce: of each ball
	Batches   = 500    // spawn: of Batch processes
	Sleepers  = 10_000 // sleep
	Slices    = 5      // work: of each worker
	Each      = 100    // fan-in: messages of each sender
	Exchanges = 200    // exchange: of each pair
	Requests  = 300    // light
	Calls     = 1000   // calls
)

// Numbers of processes, and bounds.
const (
	Bound    = 1024 // flood: of the mailbox
	Burst    = 32   // flood: messages that a process sends in a turn
	Bouncers = 256  // bounce
	Balls    = 64   // bounce
	Batch    = 64   // spawn: processes at a time
	Workers  = 64   // work
	Senders  = 1000 // fan-in
	Pairs    = 2000 // exchange
	Asked    = 4    // light: receivers of each request
	Tasks    = 64   // calls: on one of the schedulers
)

const (
	Gap  = 200 * time.Microsecond // light: between two requests
	Turn = 100 * time.Microsecond // calls: of a task
)

func resize(scale float64) {
	for _, size := range []*int{&Trips, &Flooded, &Hops, &Batches, &Sleepers, &Slices, &Each, &Exchanges, &Requests, &Calls} {
		*size = max(1, int(scale*float64(*size)))
	}
}
