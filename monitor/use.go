package monitor

import (
	"errors"
	"slices"

	"github.com/daimon-go/daimon/act"
)

// Engine says how the sockets of a scheduler make their system calls: see [Use]. It is a flag.Value.
type Engine int

const (
	// Auto makes receives and sends in batches, by io_uring(7), when many sockets are readable at once and their messages are
	// short. If io_uring cannot be used, which a line of the log says once, it is Epoll.
	Auto Engine = iota
	// Epoll makes each receive and each send by itself.
	Epoll
	// Uring makes batches even when few sockets are readable, which is slower. It is for tests.
	Uring
)

var engineNames = []string{"auto", "epoll", "uring"}

// String returns the name.
func (e *Engine) String() string { return engineNames[*e] }

// Set takes a name.
func (e *Engine) Set(name string) error {
	i := slices.Index(engineNames, name)
	if i < 0 {
		return errors.New("it is neither auto nor epoll nor uring")
	}
	*e = Engine(i)
	return nil
}

// Use is a set-up function that chooses the [Engine] of a scheduler; without it that is Auto. It comes before the set-up
// functions that listen or dial, and panics after them. With Uring these fail if the kernel refuses io_uring. The kernel's sockets
// are watched by epoll (kqueue on macOS and BSD) in any case.
func Use(e Engine) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		uses.Put(s, e)
		return nil
	}
}

var uses = act.NewLocal(func(*act.Scheduler) Engine { return Auto })
