package transition

import "context"

// WithEnqueuer returns a context for a call of Store.Enqueue by the Engine with that number.
func WithEnqueuer(ctx context.Context, engine int64) context.Context {
	return context.WithValue(ctx, enqueuer{}, engine)
}

// Enqueuer returns the number of the Engine that calls Store.Enqueue with this ctx, as in Ticket.Engine, or 0. A
// store.Watcher puts it in its hints: an Engine that has enqueued a task need not be told.
func Enqueuer(ctx context.Context) int64 {
	engine, _ := ctx.Value(enqueuer{}).(int64)
	return engine
}

// enqueuer is the key of the value that Enqueuer returns.
type enqueuer struct{}
