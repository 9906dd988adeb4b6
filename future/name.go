package future

import "github.com/daimon-go/daimon/act"

// kind names the tasks of this package in a shutdown.Cut and in package inspect, in place of types that users do not know.
type kind struct{}

// Service implements facts.Served.
func (kind) Service() string { return "futures" }

// nameOf names a task that waits for a future to call fn.
func nameOf(fn any) string { return act.Name(fn) + ", when a future is resolved" }

func (x *doing[T]) String() string      { return act.Name(x.Action) }
func (*all[T]) String() string          { return "future.All" }
func (*within[T]) String() string       { return "future.Within" }
func (m *mapping[T, U]) String() string { return nameOf(m.fn) }
func (h *handler[T]) String() string    { return nameOf(h.fn) }
