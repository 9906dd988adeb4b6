package stage

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// outage limits the log lines about a store that does not answer: to one a minute, and one when it answers again.
// Otherwise each task and each poll would log its own.
type outage struct {
	mu       sync.Mutex
	logged   bool
	line     time.Duration // when the latest line was logged, if any was
	failures int           // since then
	silent   bool          // a line was logged, and the store has not answered since
}

// unanswered notes that the store has failed to do something. log is the one of the engine, or of a task.
func (e *Engine) unanswered(log *zap.Logger, doing string, err error) {
	now, o := e.where().now(), &e.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures++
	if since := now - o.line; o.logged && 0 <= since && since < time.Minute { // negative: another host, with another clock
		return
	}
	log.Error("the store does not answer, and is asked again",
		zap.String("doing", doing), zap.Int("failures", o.failures), zap.Error(err))
	o.logged, o.line, o.failures, o.silent = true, now, 0, true
}

// answered notes that the store has answered a claim or a heartbeat.
func (e *Engine) answered() {
	o := &e.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.silent {
		e.cfg.Logger.Warn("the store answers again", zap.Int("failures", o.failures))
		o.silent = false
	}
}
