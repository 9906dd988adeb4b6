package stage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// TestWorldStages is a few processes with engines over one store that they share, some of which are shut down or die, while
// tasks are suspended, resumed and cancelled, and kinds paused, from anywhere. Each stage of each task finishes once. In some
// worlds tasks that have ended are deleted after a while.
func TestWorldStages(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		y := newTasksWorld(w)
		if w.Rand().IntN(8) == 0 {
			y.retention = map[store.Status]time.Duration{store.Normal: 3 * time.Minute, store.Canceled: 2 * time.Minute, store.Failed: 3 * time.Second}
		}
		for _, name := range []string{"A", "B", "C"} {
			v := y.process(t, name, pick(w, nil, []string{"", "express"}, []string{""}, []string{"express"}), nil)
			if w.Rand().IntN(3) > 0 {
				terms := pick(w, bounded...)
				w.At(y.moment(), func() { v.Shutdown(terms) })
			}
		}
		last := &service.Listener{Address: "10.0.0.1:7007", Handler: echo.Echo}
		y.process(t, "last", nil, nil, last.Setup)
		for range 10 + w.Rand().IntN(20) {
			w.At(y.moment(), y.enqueue)
		}
		for range w.Rand().IntN(60) {
			w.At(y.moment(), y.meddle)
		}
		for range w.Rand().IntN(20) {
			w.At(y.moment(), y.pause)
		}
		w.At(time.Minute, y.unpause)
		w.Client("10.0.0.1:7007", y.visit(3*time.Minute, 5*time.Minute)) // a function may be late by one
	})
}

// bounded are shutdown policies, one of each kind except Suspend.
var bounded = []shutdown.Policy{
	shutdown.Policy{Kind: shutdown.Halt},
	{Kind: shutdown.Halt, Drop: true},
	{Turns: 1, Time: time.Millisecond},
	{Turns: 1, Time: time.Millisecond, Drop: true},
	{Turns: 3, Time: 10 * time.Millisecond, Drop: true},
	{Time: 1},
	{Time: time.Millisecond, Drop: true},
	{Time: time.Second, Drop: true},
	shutdown.Policy{Kind: shutdown.Unbounded},
}

func pick[T any](w *sim.World, all ...T) T { return all[w.Rand().IntN(len(all))] }

// way is a chain of three stages.
var way = stage.Begin("A").Then("a-b", "work", "B").Then("b-c", "work", "C").Then("c-d", "work", "D")

// kinds returns the kinds of all tasks.
func kinds(attempts int) map[string]stage.Kind {
	return map[string]stage.Kind{
		"thing":        {Chain: way, Attempts: attempts},
		"urgent thing": {Chain: way, Attempts: attempts, Priority: 1, Queue: "express"},
	}
}

// tasksWorld is where the tasks of a world are.
type tasksWorld struct {
	w        *sim.World
	store    *unreliable
	often    int  // the store does not answer
	silent   bool // it has not, at least once
	engines  []*stage.Engine
	queues   map[string][]string // of engines
	tasks    []store.ID
	enqueued int                 // how many were to be
	stopped  map[store.ID]bool   // by Suspend or Cancel, since when nothing of them may finish
	told     map[store.ID]bool   // to have finished or been cancelled
	noted    map[store.ID]string // by processors, last

	retention map[store.Status]time.Duration
	purged    map[store.ID]store.Task // as they were
}

func newTasksWorld(w *sim.World) *tasksWorld {
	y := &tasksWorld{
		w: w, queues: map[string][]string{}, stopped: map[store.ID]bool{}, told: map[store.ID]bool{}, noted: map[store.ID]string{},
		purged: map[store.ID]store.Task{},
	}
	y.often = pick(w, 0, 500, 8000)
	y.store = &unreliable{Store: witnessed{memory.New(y.wall), y}, answer: y.answer}
	return y
}

// wall is the clock of the store.
func (y *tasksWorld) wall() time.Time {
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(y.w.Now())
}

// process is one with an engine that works on these queues; nil means all.
func (y *tasksWorld) process(t *testing.T, name string, queues []string, trace *act.Trace, setup ...func(*act.Scheduler) error) *sim.Server {
	w := y.w
	config := stage.Config{
		Store: y.store, Queues: queues, Processors: map[string]stage.Processor{"work": y.work},
		Worker: name, Workers: pick(w, 1, 3, 8), Lease: 15 * time.Second, Heartbeat: pick(w, time.Second, 4*time.Second),
		Poll: pick(w, time.Second, 5*time.Second), Logger: zap.NewNop(),
		OnEnd: y.ended, Upkeep: stage.Upkeep{Retention: y.retention},
		Kinds: kinds(pick(w, 1, 3, 100)),
	}
	e, err := stage.New(config)
	require.NoError(t, err)
	y.engines = append(y.engines, e)
	y.queues[name] = queues
	cfg := act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 1), Trace: trace}
	var v *sim.Server
	v, err = w.Server(name, cfg, append(setup, e.Setup, func(s *act.Scheduler) error {
		orderly.Put(s, closer(func() { y.over(name, v) }))
		return nil
	})...)
	require.NoError(t, err)
	return v
}

// orderly is closed when a process has ended.
var orderly = act.NewLocal(func(*act.Scheduler) closer { panic("not put") })

type closer func()

func (f closer) Close() error { f(); return nil }

// over looks at what a process leaves that was not cut: nothing.
func (y *tasksWorld) over(name string, v *sim.Server) {
	tasks, err := y.store.Store.List(context.Background(), store.Selection{Status: store.InProcessing})
	if v.Err() != nil || err != nil || y.silent {
		return
	}
	for _, t := range tasks {
		if t.Worker == name && t.Due.After(y.wall()) {
			y.w.Errorf("%s has ended in order, and still has %+v", name, t)
		}
	}
}

// moment is one in the storm.
func (y *tasksWorld) moment() time.Duration {
	return time.Duration(y.w.Rand().Int64N(int64(time.Minute)))
}

func (y *tasksWorld) engine() *stage.Engine { return y.engines[y.w.Rand().IntN(len(y.engines))] }

// work is the processor of all stages. What a stage leaves is the way so far.
func (y *tasksWorld) work(ctx context.Context, t *store.Task) (store.Commit, error) {
	w := y.w
	so := string(t.Data) + t.Stage + " "
	if want := strings.Join(dynamic(t.Stage), " ") + " "; so != want {
		w.Errorf("task %d is at %s, and has been at %q", t.ID, t.Stage, t.Data)
	}
	if before := string(t.Progress); before != "" && !strings.HasPrefix(before, t.Stage+" ") || t.ProgressStage != "" && t.ProgressStage != t.Stage {
		w.Errorf("task %d is at %s, and gets progress of another stage: %q of %q", t.ID, t.Stage, before, t.ProgressStage)
	}
	y.noted[t.ID] = fmt.Sprint(t.Stage, " ", t.Token)
	stage.SetProgress(ctx, []byte(y.noted[t.ID]))
	switch {
	case w.Happens(2000):
		return nil, errors.New("a bad day")
	case w.Happens(500):
		return nil, stage.Permanent(errors.New("not to be done"))
	case w.Happens(500):
		return nil, store.ErrSuspended
	case w.Happens(500):
		panic("a bug")
	}
	refuse := w.Happens(1000)
	return func(_ context.Context, tx store.Tx) error {
		tx.SetData([]byte(so))
		if refuse {
			return errors.New("cannot be written")
		}
		if y.stopped[t.ID] {
			w.Errorf("task %d finishes %s although it is suspended or cancelled", t.ID, t.Stage)
		}
		return nil
	}, nil
}

// ended is told of the ends of tasks, once they are stored.
func (y *tasksWorld) ended(t store.Task) {
	x, err := y.store.Store.Get(context.Background(), t.ID)
	if was, ok := y.purged[t.ID]; ok {
		x, err = was, nil
	}
	switch {
	case err != nil, t.Runs(), t.Status == store.Suspended:
		y.w.Errorf("told of an end that is none: %+v (%v)", t, err)
	case t.Status == store.Failed: // it may have been resumed
		if x.Token == t.Token && strings.HasPrefix(t.Failure, "not to be done") && string(x.Progress) != y.noted[t.ID] {
			y.w.Errorf("task %d has progress %q, and has noted %q", t.ID, x.Progress, y.noted[t.ID])
		}
	case x.Status != t.Status, x.Stage != t.Stage, y.told[t.ID]:
		y.w.Errorf("told of %+v, which is %+v (again: %t)", t, x, y.told[t.ID])
	default:
		y.told[t.ID] = true
	}
}

// dynamic are the dynamic stages up to one.
func dynamic(to string) (names []string) {
	for i, name := range way.Stages() {
		if i%2 == 1 {
			names = append(names, name)
		}
		if name == to {
			break
		}
	}
	return names
}

// enqueue adds a task with a key, and repeats that until there is an answer, perhaps from another engine. There is one task
// then, although it may have been added by a call whose answer was lost.
func (y *tasksWorld) enqueue() {
	y.enqueued++
	kind, key := pick(y.w, "thing", "urgent thing"), strconv.Itoa(y.enqueued)
	for {
		e := y.engine()
		n, err := e.NewTask(kind, nil)
		if err != nil {
			y.w.Errorf("no task: %v", err)
		}
		n.Key = key
		if ids, err := e.EnqueueAll(context.Background(), n); err == nil {
			y.tasks = append(y.tasks, ids[0])
			return
		}
	}
}

// meddle suspends, resumes or cancels something.
func (y *tasksWorld) meddle() {
	if len(y.tasks) == 0 {
		return
	}
	ctx, e, id := context.Background(), y.engine(), y.tasks[y.w.Rand().IntN(len(y.tasks))]
	switch y.w.Rand().IntN(8) {
	case 0:
		if ok, _ := e.Cancel(ctx, id); ok {
			y.stopped[id] = true
		}
	case 1, 2, 3:
		if ok, _ := e.Suspend(ctx, id); ok {
			y.stopped[id] = true
		}
	default:
		y.resume(e, id)
	}
}

// pause pauses a kind, or ends its pause.
func (y *tasksWorld) pause() {
	ctx, e, kind := context.Background(), y.engine(), pick(y.w, "thing", "urgent thing")
	if y.w.Rand().IntN(2) == 0 {
		_, _ = e.PauseKind(ctx, kind)
	} else {
		_, _ = e.ResumeKind(ctx, kind)
	}
}

// unpause ends all pauses, early enough that tasks whose workers were lost meanwhile are found before the end.
func (y *tasksWorld) unpause() {
	for _, kind := range []string{"thing", "urgent thing"} {
		if _, err := y.store.Store.SetPaused(context.Background(), kind, false); err != nil {
			y.w.Errorf("%s stays paused: %v", kind, err)
		}
	}
}

// witnessed is the store of a world, which looks at what it gives to engines and at what it deletes.
type witnessed struct {
	store.Store
	y *tasksWorld
}

// Claim gives no task of a kind that is paused or in a queue of others, and none while one of a higher priority is due. A task
// has the progress that it had.
func (s witnessed) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	y := s.y
	paused, wrong := s.Paused(ctx)
	before, none := s.List(ctx, store.Selection{Running: true})
	tasks, err := s.Store.Claim(ctx, c)
	if wrong = errors.Join(wrong, none); wrong != nil {
		y.w.Errorf("no tasks: %v", wrong)
	}
	queues := y.queues[c.Worker]
	may := func(t store.Task) bool {
		return (queues == nil || slices.Contains(queues, kinds(0)[t.Kind].Queue)) && !slices.Contains(paused, t.Kind)
	}
	for _, t := range tasks {
		if !may(t) {
			y.w.Errorf("%s has the queues %q, and claims %+v while %q are paused", c.Worker, queues, t, paused)
		}
		for _, x := range before {
			if x.ID == t.ID && (string(x.Progress) != string(t.Progress) || x.ProgressStage != t.ProgressStage) {
				y.w.Errorf("%+v was claimed, and had progress %q of %q", t, x.Progress, x.ProgressStage)
			}
			left := !slices.ContainsFunc(tasks, func(t store.Task) bool { return t.ID == x.ID })
			if left && kinds(0)[x.Kind].Priority > kinds(0)[t.Kind].Priority && may(x) && !x.Due.After(y.wall()) {
				y.w.Errorf("%+v was claimed before %+v", t, x)
			}
		}
	}
	return tasks, err
}

// Purge deletes tasks that have ended, and none before its time.
func (s witnessed) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	y := s.y
	before := y.all()
	n, err := s.Store.Purge(ctx, status, age, limit)
	if n == 0 {
		return n, err
	}
	after := y.all()
	for _, t := range before {
		if slices.ContainsFunc(after, func(x store.Task) bool { return x.ID == t.ID }) {
			continue
		}
		if age, ok := y.retention[t.Status]; !ok || !t.Ended() || y.wall().Sub(t.Changed) < age {
			y.w.Errorf("%+v is deleted at %v", t, y.wall())
		}
		y.purged[t.ID] = t
	}
	return n, err
}

// all returns the tasks that are there.
func (y *tasksWorld) all() []store.Task {
	tasks, err := y.store.Store.List(context.Background(), store.Selection{})
	if err != nil {
		y.w.Errorf("no tasks: %v", err)
	}
	return tasks
}

func (y *tasksWorld) resume(e *stage.Engine, id store.ID) {
	was := y.stopped[id]
	y.stopped[id] = false // before: it may be under way again when Resume returns
	if ok, err := e.Retry(context.Background(), id); !ok && err == nil {
		y.stopped[id] = was
	}
}

// TestStagesAreCutAtEveryTurn gives each kind of order at the end of the first turn of a process, the second, and so
// on, until its work has ended before. Another process finishes what is left.
func TestStagesAreCutAtEveryTurn(t *testing.T) {
	for _, terms := range append([]shutdown.Policy{{Kind: shutdown.Suspend}, {Kind: shutdown.Suspend, Drop: true}}, bounded...) {
		t.Run(terms.String(), func(t *testing.T) {
			worlds := 0
			for at := 1; ordered(t, terms, at); at++ {
				worlds++
			}
			require.Greater(t, worlds, 30, "turns")
		})
	}
}

// ordered runs a world whose order comes at the end of a turn, and reports whether there was such a turn.
func ordered(t *testing.T, terms shutdown.Policy, at int) (given bool) {
	w := sim.New(sim.Options{Seed: 1})
	y := newTasksWorld(w)
	var v *sim.Server
	turns := 0
	v = y.process(t, "first", nil, &act.Trace{TurnEnd: func(*act.Task, act.Directive) {
		if turns++; turns == at && w.Now() < 10*time.Second {
			given = true
			v.Shutdown(terms)
		}
	}})
	for range 3 {
		y.enqueue()
	}
	w.At(20*time.Second, func() { y.process(t, "second", nil, nil) })
	last := &service.Listener{Address: "10.0.0.1:7007", Handler: echo.Echo}
	_, err := w.Server("echo", act.Config{}, last.Setup)
	require.NoError(t, err)
	w.Client("10.0.0.1:7007", y.visit(30*time.Second, 20*time.Second))
	require.NoError(t, w.Run(), "the order came after turn %d", at)
	return given
}

// visit is a script that waits until the storm is over, resumes what is at rest, and comes back when everything must
// be done.
func (y *tasksWorld) visit(calm, done time.Duration) sim.Script {
	return func(c *sim.Client) error {
		c.Sleep(calm - y.w.Now())
		if err := y.resumeAll(); err != nil {
			return err
		}
		c.Sleep(done)
		return y.allDone()
	}
}

func (y *tasksWorld) resumeAll() error {
	tasks, err := y.store.Store.List(context.Background(), store.Selection{})
	for _, t := range tasks {
		y.resume(y.engines[len(y.engines)-1], t.ID)
	}
	return err
}

func (y *tasksWorld) allDone() error {
	tasks := y.all()
	for _, t := range tasks {
		if age, ok := y.retention[t.Status]; ok && t.Ended() && y.wall().Sub(t.Changed) > age+4*time.Minute { // a function may be late, and again
			y.w.Errorf("not deleted at the end: %+v", t)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(y.purged)) {
		tasks = append(tasks, y.purged[id])
	}
	if len(tasks) != y.enqueued {
		y.w.Errorf("%d tasks were enqueued, and there are %d", y.enqueued, len(tasks))
	}
	for _, t := range tasks {
		finished := t.Stage == "D" && t.Status == store.Normal && string(t.Data) == "a-b b-c c-d "
		_, failed := y.purged[t.ID]
		if failed = failed && t.Status == store.Failed; !finished && !failed && t.Status != store.Canceled {
			y.w.Errorf("not finished at the end: %+v", t)
		}
		if finished && !y.told[t.ID] && y.often == 0 {
			y.w.Errorf("not told of the end: %+v", t)
		}
	}
	if !slices.ContainsFunc(tasks, func(t store.Task) bool { return t.Stage == "D" }) {
		y.w.Errorf("none of %d tasks has finished", len(tasks))
	}
	return nil
}

// answer is that of a store which now and then gives none: before it has done what it was to do, or after that. Then is
// a good time to meddle.
func (y *tasksWorld) answer(_ context.Context, _ string, _ any, do func() error) error {
	w := y.w
	if w.Happens(y.often) {
		y.silent = true
		return errLost
	}
	err := do()
	if w.Happens(y.often) {
		y.silent = true
		w.At(w.Now()+time.Duration(w.Rand().Int64N(int64(50*time.Millisecond))), y.meddle)
		return errLost
	}
	return err
}
