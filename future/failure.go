package future

import (
	"runtime"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/panics"
)

// failure is the outcome of a future that failed. It is separate from the future, which must be unreachable before the
// garbage collector calls report.
type failure struct {
	err    error
	seen   atomic.Bool
	logger *zap.Logger
}

// newFailure also registers report with the garbage collector, so a failure costs more than a value.
func newFailure(of *core, err error, seen bool) *failure {
	x := &failure{err: err, logger: of.s.Logger()}
	if x.seen.Store(seen); !seen {
		runtime.AddCleanup(of, (*failure).report, x)
	}
	return x
}

// see returns the error and marks the failure as seen.
func (x *failure) see() error {
	if !x.seen.Load() { // load first: many may read one failure
		x.seen.Store(true)
	}
	return x.err
}

// report logs a failure that was not seen. The garbage collector calls it on a goroutine of its own when the
// future is unreachable.
func (x *failure) report() {
	if !x.seen.Load() {
		x.logger.Error("a future failed and its error was never read", panics.Fields(x.err)...)
	}
}
