package stage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/stage"
)

// TestWorldKeys is a few processes that enqueue tasks with the same keys at the same moments, in calls that overlap, over a store that
// now and then does not answer: then they ask again. Some get orders or die. While a task stands for its key, there is no other,
// and all who ask are told its number.
func TestWorldKeys(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		y := newTasksWorld(w)
		k := &keysWorld{y: y, within: map[string]time.Duration{"0": 0, "1": 0, "2": 10 * time.Second, "3": 30 * time.Second}}
		moments := make([]time.Duration, 4)
		for i := range moments {
			moments[i] = y.moment()
		}
		for _, name := range []string{"A", "B", "C"} {
			e, err := stage.New(stage.Config{
				Store: y.store, Kinds: map[string]stage.Kind{"a": {Chain: noting}, "b": {Chain: noting}},
				Provider: stage.Processors{"note": stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil })},
				Worker:   name, Poll: 30 * time.Second, Logger: zap.NewNop(),
			})
			require.NoError(t, err)
			var s *act.Scheduler
			v, err := w.Server(name, act.Config{}, e.Setup, func(x *act.Scheduler) error { s = x; return nil })
			require.NoError(t, err)
			if w.Rand().IntN(3) > 0 {
				terms := pick(w, bounded...)
				w.At(y.moment(), func() { v.Shutdown(shutdown.Now{Terms: terms}) })
			}
			for _, at := range moments {
				w.At(at, func() { _ = s.Post(func(s *act.Scheduler) { s.Spawn(k.asking(e, s)) }) })
			}
		}
		_, err := w.Server("echo", act.Config{}, (&service.TCP{Address: "10.0.0.1:7007", Handler: echo.Echo}).Setup)
		require.NoError(t, err)
		w.Client("10.0.0.1:7007", func(c *sim.Client) error {
			c.Sleep(3 * time.Minute)
			return k.verdict()
		})
	})
}

// noting is a chain of one stage.
var noting = stage.Begin("A").Then("B", "note", "C")

// keysWorld has the keys of a world. The data of a task is its key.
type keysWorld struct {
	y      *tasksWorld
	within map[string]time.Duration
	told   []told
}

// told is the answer to a call that began and ended at these times.
type told struct {
	id         stage.ID
	kind, key  string
	begun, end time.Time
}

// asking enqueues two tasks of all, perhaps twice the same.
func (k *keysWorld) asking(e *stage.Engine, s *act.Scheduler) act.Action {
	w := k.y.w
	var some []stage.NewTask
	for range 2 {
		key := fmt.Sprint(w.Rand().IntN(len(k.within)))
		n, err := e.NewTask(pick(w, "a", "b"), []byte(key))
		if err != nil {
			w.Errorf("no task: %v", err)
		}
		n.Key, n.Within = key, k.within[key]
		some = append(some, n)
	}
	return &act.Call[struct{}]{On: s.Reserve(1), F: func() (struct{}, error) {
		ctx := slowly{context.Background(), w}
		for {
			begun := k.y.wall()
			if ids, err := e.EnqueueAll(ctx, some...); err == nil {
				for i, id := range ids {
					k.told = append(k.told, told{id, some[i].Kind, some[i].Key, begun, k.y.wall()})
				}
				return struct{}{}, nil
			}
		}
	}}
}

// slowly is a context in which a call of a store takes time before the store takes its lock.
type slowly struct {
	context.Context
	w *sim.World
}

func (c slowly) Err() error {
	end := c.w.Now() + time.Duration(c.w.Rand().Int64N(int64(time.Millisecond)))
	c.w.At(end, func() {})
	c.w.Await(func() bool { return c.w.Now() >= end })
	return nil
}

// verdict looks at all tasks and at what the processes were told.
func (k *keysWorld) verdict() error {
	tasks, err := k.y.store.Store.List(context.Background(), stage.Selection{})
	latest, of := map[[2]string]time.Time{}, map[stage.ID]stage.Task{}
	for _, x := range tasks {
		of[x.ID] = x
		name, key := [2]string{x.Kind, string(x.Data)}, string(x.Data)
		if before, ok := latest[name]; ok && (k.within[key] == 0 || x.Created.Sub(before) < k.within[key]) {
			k.y.w.Errorf("the task with the key %q from %v stands when %+v is added", key, before, x)
		}
		latest[name] = x.Created
	}
	for _, x := range k.told {
		is := of[x.id]
		stands := k.within[x.key] == 0 || x.begun.Sub(is.Created) < k.within[x.key]
		if is.Kind != x.kind || string(is.Data) != x.key || !stands || is.Created.After(x.end) {
			k.y.w.Errorf("%+v was told of %+v", x, is)
		}
	}
	if len(k.told) == 0 {
		k.y.w.Errorf("nothing was told")
	}
	return err
}
