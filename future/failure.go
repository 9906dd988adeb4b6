package future

import (
	"errors"
	"runtime"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
)

// failure is the outcome of a future that has no value. It is apart from the future, which must be
// gone before the collector reports that nobody has looked.
type failure struct {
	err    error
	seen   atomic.Bool
	logger *zap.Logger
}

// newFailure also allocates what the collector needs: a failure is dearer than a value.
func newFailure(of *core, err error, seen bool) *failure {
	x := &failure{err: err, logger: of.s.Logger()}
	if x.seen.Store(seen); !seen {
		runtime.AddCleanup(of, (*failure).report, x)
	}
	return x
}

// look returns the error to somebody who from now on knows of it.
func (x *failure) look() error {
	if !x.seen.Load() { // many may read one, few write
		x.seen.Store(true)
	}
	return x.err
}

// report is called by the collector, on a goroutine of its own, once nobody can reach the future.
func (x *failure) report() {
	if x.seen.Load() {
		return
	}
	fields := []zap.Field{zap.Error(x.err)}
	var p *act.Panic
	if errors.As(x.err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	x.logger.Error("a future failed and nobody has looked at it", fields...)
}
