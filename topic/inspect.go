package topic

import (
	"slices"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/summary"
)

// locals find the lanes of a scheduler, for package inspect.
var locals = act.NewLocal(func(*act.Scheduler) *local { return &local{} })

// local has the lanes of a scheduler: one for each Broker.
type local struct{ lanes []*lane }

func (x *local) add(l *lane) {
	if !slices.Contains(x.lanes, l) { // its Group may run again
		x.lanes = append(x.lanes, l)
	}
}

// Counts implements facts.Counter. What belongs to no scheduler is counted with the first one.
func (x *local) Counts(add func(name string, n uint64)) {
	for _, l := range x.lanes {
		b := l.b
		b.mu.Lock()
		subscribed, waiting := l.subscribed, len(l.pending)+len(l.taken)-l.at
		kept, passed, unstored := b.records, b.seq, 0
		if b.remote != nil {
			unstored = len(b.remote.queue)
		}
		b.mu.Unlock()
		add("topic_subscriptions", uint64(subscribed))
		add("topic_waiting", uint64(max(0, waiting)))
		add("topic_delivered_total", l.delivered)
		add("topic_dropped_total", l.dropped)
		add("topic_slow_total", l.slow)
		if l.s.Index() == 0 {
			add("topic_kept", uint64(kept))
			add("topic_messages_total", passed)
			add("topic_unstored", uint64(unstored))
		}
	}
}

// loss is what subscriptions have missed in a second because their owners are slow.
type loss struct{ dropped, ended uint64 }

var losses = summary.New(func(log *zap.Logger, x loss) {
	log.Info("subscriptions to topics were too slow",
		zap.Uint64("messages dropped", x.dropped), zap.Uint64("subscriptions ended", x.ended))
})

// note adds what was lost since the note before to the line in the log.
func (l *lane) note() {
	now := loss{l.dropped, l.slow}
	if now != l.noted {
		losses.Add(l.s, func(x *loss) {
			x.dropped += now.dropped - l.noted.dropped
			x.ended += now.ended - l.noted.ended
		})
		l.noted = now
	}
}
