package act

import "github.com/daimon-go/daimon/internal/pool"

// Executor calls functions on goroutines other than the schedulers'. Implement one to use a pool of your own as
// Config.Executor; the default is a pool of at most Config.Offloads goroutines. Execute may be called from any
// goroutine. It must not block, and must call every f once, sooner or later.
//
// An Executor may have a method Reserve(n int) Executor, for any goroutine. It returns an Executor that runs up to n
// functions at a time, which do not queue behind others: the functions of bridges, of blocking handlers and of stages.
// Without Reserve they share the Executor.
type Executor interface {
	// Execute arranges for f to be called on another goroutine, and returns at once.
	Execute(f func())
}

// Executor returns the Group's Executor. Any goroutine.
func (s internals) Executor() Executor { return s.group.cfg.Executor }

// Reserve returns an Executor for functions that must not queue with others: n goroutines of its own, in addition to
// the Offloads, if the Config.Executor can reserve them. Any goroutine.
func (s internals) Reserve(n int) Executor {
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

// Reserve returns another pool.
func (executor) Reserve(n int) Executor { return newExecutor(n) }
