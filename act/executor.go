package act

import "github.com/daimon-go/daimon/internal/pool"

// Executor calls functions on goroutines other than the schedulers'. Execute may be called from any goroutine. It must not
// block, and must call every f once, sooner or later.
//
// An Executor may have a method Reserve(n int) Executor, for any goroutine. What it returns calls up to n functions at a time that
// do not wait behind others: those of bridges, of blocking handlers and of stages. Without it they share the Executor.
type Executor interface {
	Execute(f func())
}

// Reserve returns an Executor for functions that must not wait behind others: n goroutines of its own, in addition to
// the Offloads, if the Config.Executor can reserve them. Any goroutine.
func (i *internals) Reserve(n int) Executor {
	if n < 1 {
		panic("act: Reserve of no goroutines")
	}
	if r, ok := i.group.cfg.Executor.(interface{ Reserve(n int) Executor }); ok {
		return r.Reserve(n)
	}
	return i.group.cfg.Executor
}

// executor is the default Executor.
type executor struct{ *pool.Pool }

func newExecutor(limit int) Executor { return executor{pool.New(limit)} }

// Reserve returns a second one.
func (executor) Reserve(n int) Executor { return newExecutor(n) }
