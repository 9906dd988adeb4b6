package servertest

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/monitor"
	"go.uber.org/goleak"
)

// Replay is a stream that delivers the same bytes again and again, one time after each call of Again, and discards what is
// written. It allocates nothing.
type Replay struct {
	monitor.Stream
	Says []byte
	Sent int // bytes that were written

	there  bool
	reader act.Waker
}

// Again lets the bytes come once more.
func (r *Replay) Again() {
	r.there = true
	r.reader.Wake()
}

// Lend implements monitor.Stream.
func (r *Replay) Lend(int) ([]byte, error) {
	if !r.there {
		return nil, monitor.ErrWouldBlock
	}
	r.there = false
	if race.Enabled {
		return bytes.Clone(r.Says), nil // lent bytes are spoilt after the turn
	}
	return r.Says, nil
}

// Send implements monitor.Stream.
func (r *Replay) Send(head, p []byte, _ int) (int, error) {
	r.Sent += len(head) + len(p)
	return len(p), nil
}

// Queued implements monitor.Stream.
func (r *Replay) Queued() (int, error) { return 0, nil }

// AwaitInput implements monitor.Stream.
func (r *Replay) AwaitInput(w act.Waker) {
	if r.reader = w; r.there {
		w.Wake()
	}
}

// Main is the TestMain of a package whose tests run schedulers and their clients. A busy scheduler lets go of no processor, so
// there are more of them than it needs.
func Main(m *testing.M) {
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// Worlds is the TestMain of a package of simulated worlds. few is how many worlds of a scenario run in the tiers quick and
// full, and many how many in long, unless SIM_SEEDS says so.
func Worlds(m *testing.M, few, many int) {
	StartRuntimePoller()
	if os.Getenv("SIM_SEEDS") == "" {
		os.Setenv("SIM_SEEDS", strconv.Itoa(tier.Choose(few, few, many)))
	}
	goleak.VerifyTestMain(m)
}
