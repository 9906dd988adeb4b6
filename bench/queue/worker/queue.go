package main

import (
	"context"
	"time"
)

// queue is one of the compared queues. A task that it enqueues has one stage, and carries the time of the call.
type queue interface {
	// enqueue adds n tasks in one call, in the way that a program would do it.
	enqueue(ctx context.Context, n int) error

	// fill adds n tasks in one call, in the fastest way that there is.
	fill(ctx context.Context, n int) error

	// work begins to work on tasks, and goes on until stop.
	work(ctx context.Context, t task) (stop func() error, err error)

	// finished is how many tasks the database has as finished.
	finished() string

	// table is the table of the tasks.
	table() string

	close() error
}

// task is what is done with each task. The functions are called on many goroutines.
type task struct {
	do      func(ctx context.Context, enqueued int64) // measure.Clock at the call that enqueued it
	ended   func()                                    // the database has it as finished; nil: nothing
	claimed func(took time.Duration, tasks int)       // nil: not to be measured
}

// queues open a queue on an empty database.
var queues = map[string]func(context.Context, Options) (queue, error){
	"daimon": openDaimon,
	"river":  openRiver,
}
