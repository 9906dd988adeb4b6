//go:build unix

package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

// Lease is that of the engines. If one ends because the machine is slow, that is one more worker that was lost: nothing
// depends on it.
const Lease = 2 * time.Second

// Processes is how many work on a store.
const Processes = 4

// A Step commits a stage: it writes a row with the task and the stage.
type Step func(ctx context.Context, tx store.Tx, id store.ID, at string) error

// The kinds have two priorities and two queues. The kinds in keyed have tasks with keys.
var (
	kinds = map[string]stage.Kind{
		"job":        {Chain: long, Attempts: 1000, Backoff: soon},
		"urgent job": {Chain: long, Attempts: 1000, Backoff: soon, Priority: 1},
		"other job":  {Chain: long, Attempts: 1000, Backoff: soon, Queue: "other"},
		"tick":       {Chain: short, Attempts: 1000, Backoff: soon},
	}
	keyed = []string{"job", "urgent job", "other job", "job", "urgent job"}

	long  = stage.Begin("NEW").Then("FIRST", "write", "ONE").Then("SECOND", "write", "TWO").Then("THIRD", "nothing", "DONE")
	short = stage.Begin("NEW").Then("TICKING", "write", "DONE")

	// writes is how many stages of a task write a row: the first ones.
	writes = map[string]int{"job": 2, "urgent job": 2, "other job": 2, "tick": 1}

	// ticks are the periodic tasks: engines try to run them so often that two engines meet.
	ticks = map[string]struct {
		kind  string
		every time.Duration
	}{"p": {"tick", 70 * time.Millisecond}, "q": {"job", 400 * time.Millisecond}}

	// queues are the queues of the processes, by their numbers.
	queues = [Processes][]string{nil, {""}, {"other"}, nil}
)

// retention is that of tasks that were cancelled.
const retention = time.Second

func soon(int) time.Duration { return 10 * time.Millisecond }

// steps is how many steps a stage has, and how long each takes at most.
var steps = map[string]struct {
	n    int
	most time.Duration
}{"FIRST": {6, 200 * time.Millisecond}, "SECOND": {3, 60 * time.Millisecond}, "THIRD": {1, 60 * time.Millisecond}, "TICKING": {1, 10 * time.Millisecond}}

// keys is how many tasks with keys there are. All processes enqueue all of them.
func keys() int { return tier.Choose(20, 36, 300) }

// key returns one of them.
func key(i int) store.NewTask {
	name := fmt.Sprint("key ", i)
	return store.NewTask{Kind: keyed[i%len(keyed)], Stage: "NEW", Key: name, Data: []byte(name)}
}

// config is that of an engine. The last one is quick, and has no ticks.
func config(s store.Store, step Step, queues []string, last bool) stage.Config {
	pause := func(most time.Duration) time.Duration {
		if last {
			return 0
		}
		return rand.N(most)
	}
	check := func(t *store.Task) error {
		switch queue := kinds[t.Kind].Queue; {
		case len(queues) > 0 && !slices.Contains(queues, queue):
			return stage.Permanent(fmt.Errorf("claimed for the queues %q, and not for %q", queues, queue))
		case t.Attempt >= int(t.Token):
			return stage.Permanent(fmt.Errorf("there were %d attempts and %d claims", t.Attempt, t.Token))
		}
		return nil
	}
	work := func(ctx context.Context, t *store.Task) error {
		n, err := progress(t)
		if err = errors.Join(err, check(t)); err != nil {
			return stage.Permanent(err)
		}
		for of := steps[t.Stage]; n < of.n; n++ {
			stage.SetProgress(ctx, fmt.Appendf(nil, "%s %d", t.Stage, n+1))
			select {
			case <-time.After(pause(of.most)):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	cfg := stage.Config{
		Store: s, Kinds: kinds, Queues: queues, Workers: 4, Lease: Lease, Heartbeat: Lease / 10, Poll: Lease / 20, Logger: zap.NewNop(),
		Processors: map[string]stage.Processor{
			"write": func(ctx context.Context, t *store.Task) (store.Commit, error) {
				return func(ctx context.Context, tx store.Tx) error { return step(ctx, tx, t.ID, t.Stage) }, work(ctx, t)
			},
			"nothing": func(ctx context.Context, t *store.Task) (store.Commit, error) { return nil, work(ctx, t) },
		},
	}
	if last {
		cfg.Workers = 20
		return cfg
	}
	cfg.Upkeep.Retention = map[store.Status]time.Duration{store.Canceled: retention}
	cfg.Upkeep.Periodic = map[string]stage.Periodic{}
	for name, x := range ticks {
		cfg.Upkeep.Periodic[name] = stage.Periodic{
			Kind: x.kind, Schedule: stage.Every(x.every), Missed: 1000,
			Data: func(tick time.Time) ([]byte, error) {
				if len(doomed) > 0 { // between here and the return of Store.Tick, or a little later
					time.AfterFunc(rand.N(3*time.Millisecond), func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
				}
				return []byte(name + " " + tick.Format(time.RFC3339Nano)), nil
			},
		}
	}
	return cfg
}

// doomed gets a SIGUSR1 with which the process kills itself in its next Tick. The signal is heeded before SIGTERM is.
var doomed = make(chan os.Signal, 1)

func init() { signal.Notify(doomed, syscall.SIGUSR1) }

// progress returns how many steps of its stage the task has made.
func progress(t *store.Task) (n int, err error) {
	if t.Progress == nil {
		return 0, nil
	}
	if _, err := fmt.Sscanf(string(t.Progress), t.ProgressStage+" %d", &n); err != nil {
		return 0, fmt.Errorf("the progress at %s is %q: %w", t.ProgressStage, t.Progress, err)
	}
	return n, nil
}

// Work is what a process does, given its number below Processes, until ctx ends: its engine works, and it enqueues all tasks with
// keys, a few at a time, again and again. After SIGUSR1 it dies in the middle of a Tick.
func Work(ctx context.Context, s store.Store, number int, step Step) error {
	e, err := stage.New(config(s, step, queues[number], false))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() {
		const few, pause = 5, Lease / 10
		for ctx.Err() == nil {
			var tasks []store.NewTask
			now := int(time.Now().UnixNano()/int64(pause)%int64(keys())) * few // all processes the same ones
			for _, i := range rand.Perm(few + 1) {                             // one of which comes again
				tasks = append(tasks, key((now+i)%keys()))
			}
			_, _ = s.Enqueue(ctx, tasks...) // or the next time
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
	err = e.Run(ctx)
	all.Wait()
	return err
}
