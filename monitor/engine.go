package monitor

import (
	"errors"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
)

// ErrWouldBlock is the error of a [Stream] when nothing can be done at once: call the await method, and try again when woken.
// A listener.Conn returns an act.Blocked instead.
var ErrWouldBlock = errors.New("monitor: would block")

var defaults = act.NewLocal(newReadiness)

// EngineOf is for the other packages of Daimon: it returns what makes the connections of s. The first call makes it the
// Idler of s, and fails if no poller can be opened. It is called on the thread of s.
func EngineOf(s *act.Scheduler) (engine.Engine, error) {
	e, err := opened(s)
	if err != nil {
		return nil, err // not e: a nil *readiness would be an Engine
	}
	return e, nil
}

func opened(s *act.Scheduler) (*readiness, error) {
	e := defaults.Get(s)
	return e, e.open()
}
