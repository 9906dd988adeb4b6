package act

import "github.com/daimon-go/daimon/internal/pool"

// Executor calls functions on goroutines other than the schedulers'. Execute may be called from any goroutine. It must not
// block, and must call every f once, sooner or later.
type Executor interface {
	Execute(f func())
}

// Reserve returns an Executor for functions that must not wait behind others: n goroutines of its own, in addition to
// the Offloads. A Config.Executor provides it by a method Reserve(n int) act.Executor for any goroutine; without that
// method, Reserve returns the Config.Executor itself. See Call.On. Any goroutine.
func (s *Scheduler) Reserve(n int) Executor {
	if n < 1 {
		panic("act: Reserve of no goroutines")
	}
	if r, ok := s.group.cfg.Executor.(interface{ Reserve(n int) Executor }); ok {
		return r.Reserve(n)
	}
	return s.group.cfg.Executor
}

// executor is the default Executor.
type executor struct{ *pool.Pool }

func newExecutor(limit int) Executor { return executor{pool.New(limit)} }

// Reserve returns a second one.
func (executor) Reserve(n int) Executor { return newExecutor(n) }
