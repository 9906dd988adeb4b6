package servertest

import (
	"bytes"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/monitor"
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
