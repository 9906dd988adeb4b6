package stage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/daimon-go/daimon/stage/store"
)

// Typed is a kind of task whose Data is a value of type T, as JSON. The methods may be called from any goroutine.
//
//	var reports = stage.Typed[Month]{Kind: "report"}
//
//	map[string]stage.Processor{"load": reports.Processor(load)}
//	id, err := reports.Enqueue(ctx, engine, Month{2026, time.May})
type Typed[T any] struct {
	Kind string // the name of the kind, in Config.Kinds
}

// Enqueue is [Engine.Enqueue] with v as the Data. It also fails if v cannot be marshalled.
func (k Typed[T]) Enqueue(ctx context.Context, e *Engine, v T) (store.ID, error) {
	data, err := k.Data(v)
	if err != nil {
		return 0, err
	}
	return e.Enqueue(ctx, k.Kind, data)
}

// NewTask is [Engine.NewTask] with v as the Data. It also fails if v cannot be marshalled.
func (k Typed[T]) NewTask(e *Engine, v T) (store.NewTask, error) {
	data, err := k.Data(v)
	if err != nil {
		return store.NewTask{}, err
	}
	return e.NewTask(k.Kind, data)
}

// Data returns v as JSON, for a function that returns Data, such as Periodic.Data. It fails if v cannot be marshalled.
func (k Typed[T]) Data(v T) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("stage: data of a %s: %w", k.Kind, err)
	}
	return data, nil
}

// Value returns the Data of t, unmarshalled, or the error of encoding/json. Processors made by Processor need not call it.
func (k Typed[T]) Value(t *store.Task) (v T, err error) {
	if err := json.Unmarshal(t.Data, &v); err != nil {
		return v, fmt.Errorf("stage: data of %v: %w", t, err)
	}
	return v, nil
}

// Result is [Engine.Result] with a value, from the Data that the last stage has left. The error is the task's Err if it
// has ended without finishing. The caller must know that the task is of this Kind.
func (k Typed[T]) Result(ctx context.Context, e *Engine, id store.ID) (v T, err error) {
	t, err := e.Result(ctx, id)
	if err == nil {
		err = t.Err()
	}
	if err != nil {
		return v, err
	}
	return k.Value(&t)
}

// SetData is [store.Tx].SetData with v as the Data. It fails if v cannot be marshalled; the Commit then returns that error.
func (k Typed[T]) SetData(tx store.Tx, v T) error {
	data, err := k.Data(v)
	if err == nil {
		tx.SetData(data)
	}
	return err
}

// Processor returns a Processor that calls process with the value of the task. If the Data cannot be unmarshalled, the
// task fails for good at once ([Permanent]). An UnmarshalJSON of T that returns [Snooze] leaves the task to an engine of
// another release, which may understand the Data.
func (k Typed[T]) Processor(process func(ctx context.Context, t *store.Task, v T) (store.Commit, error)) Processor {
	return func(ctx context.Context, t *store.Task) (store.Commit, error) {
		v, err := k.Value(t)
		if err != nil {
			return nil, Permanent(err)
		}
		return process(ctx, t, v)
	}
}
