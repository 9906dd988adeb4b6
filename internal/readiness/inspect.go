package readiness

import (
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/netpoll"
)

// State is what package sim sees of a Socket.
type State struct {
	FD             int
	In             bool // there may be something to receive
	Reader, Writer bool // a task waits for input, for room
	Queued         int  // bytes that the system has not taken yet
	Dialing        bool // the reader waits for the connection
	ForEnd         bool // the reader waits for the end, and not for input
	Half           bool // the peer is known to have closed its side
}

// Inspect calls visit for each open Socket of s.
func Inspect(s *act.Scheduler, visit func(State)) {
	for _, sl := range engines.Get(s).slots {
		if k, ok := sl.watcher.(*Socket); ok && k.fd >= 0 {
			visit(State{
				FD: int(k.fd), In: k.ready&netpoll.In != 0, Queued: k.queued(),
				Dialing: k.state&dialing != 0, ForEnd: k.state&forEnd != 0, Half: k.ready&netpoll.PeerClosed != 0,
				Reader: audit.Waits(k.reader), Writer: k.out != nil && slices.ContainsFunc(k.out.writers, writer.waits),
			})
		}
	}
}

func (x writer) waits() bool { return audit.Waits(x.waker) }
