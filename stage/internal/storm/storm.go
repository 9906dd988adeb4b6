//go:build unix

// Package storm kills and stops processes that work on the tasks of one store. The tasks have keys, priorities, queues,
// ticks, progress and a retention. Kinds are paused, and tasks are suspended, resumed and cancelled. Tests of stores
// that processes share use it.
package storm

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

// Site is where a storm takes place.
type Site struct {
	Store store.Store // which counts its tasks
	DB    *sql.DB     // of the same database
	Steps string      // the table with the rows of Step: task, stage
	Step  Step

	Worker func(number int) *exec.Cmd  // calls Work until SIGTERM, and writes a byte when it heeds that
	Stop   func(testing.TB, *exec.Cmd) // by SIGSTOP
}

// storm is one.
type storm struct {
	*require.Assertions
	Site
	t       testing.TB
	workers [Processes]*exec.Cmd
	stopped map[int]time.Time             // when, by the number of the process
	paused  map[string]map[store.ID]int64 // the tokens of the tasks when the pause of their kind had begun
	seen    map[store.ID]store.Task       // the latest one with progress

	there                map[store.ID]store.Task // all tasks, at the latest look
	looked               time.Time               // when that began
	changed              time.Time               // when a look has found a task changed
	purged               map[store.ID]store.Task // deleted tasks, as the last look found them
	suspended, cancelled map[store.ID]store.Task // after the request
	suspensions          map[store.ID]int        // how often each task was suspended
	unseen               map[store.ID]bool       // tasks that were purged before they were seen cancelled

	kills, ticks, stops, lost, carried int
}

// Run kills and stops processes, pauses kinds, and suspends, resumes and cancels tasks, at random moments, until enough
// has happened. Then the processes end, and an engine of this process does the remaining work. These have to be true:
//
//   - All tasks finish, unless they are cancelled. Each stage was committed once.
//   - There is one task for each key and each tick.
//   - No task was claimed while its kind was paused. No stage finished of a task that was suspended or cancelled.
//   - No progress was lost that a heartbeat had stored.
//   - Tasks are deleted only if they had ended for the time of the retention.
//   - The counts of the store are right.
func Run(t testing.TB, s Site) {
	w := &storm{
		Assertions: require.New(t), Site: s, t: t,
		stopped: map[int]time.Time{}, paused: map[string]map[store.ID]int64{}, seen: map[store.ID]store.Task{},
		there: map[store.ID]store.Task{}, purged: map[store.ID]store.Task{},
		suspended: map[store.ID]store.Task{}, cancelled: map[store.ID]store.Task{}, suspensions: map[store.ID]int{}, unseen: map[store.ID]bool{},
	}
	for i := range w.workers {
		w.start(i)
	}
	for w.changed = time.Now(); !w.enough(); {
		w.Less(time.Since(w.changed), 2*time.Minute, "nothing happens any more: %v", w)
		w.pause()
		w.request()
		time.Sleep(50*time.Millisecond + rand.N(250*time.Millisecond))
		w.look()
		w.strike(rand.IntN(Processes))
	}
	for i := range w.stopped {
		w.NoError(w.workers[i].Process.Signal(syscall.SIGCONT))
	}
	for _, cmd := range w.workers {
		w.NoError(cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, cmd := range w.workers {
		err := cmd.Wait()
		w.NoError(err, "%s", cmd.Stderr)
	}
	for kind := range w.paused {
		w.endPause(kind)
	}
	for id := range w.suspended {
		w.resume(id)
	}
	w.finish()
	w.judge()
	t.Log(w)
}

func (w *storm) String() string {
	return fmt.Sprintf("%d kills, %d of them in a Tick, %d stops, %d leases lost, %d times with progress, "+
		"%d tasks suspended, %d cancelled, %d purged",
		w.kills, w.ticks, w.stops, w.lost, w.carried, len(w.suspensions), len(w.cancelled), len(w.purged))
}

// start starts a process, and waits until it heeds SIGTERM.
func (w *storm) start(number int) {
	cmd := w.Worker(number)
	cmd.Stderr = &bytes.Buffer{}
	out, err := cmd.StdoutPipe()
	w.NoError(err)
	w.NoError(cmd.Start())
	w.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	_, err = out.Read(make([]byte, 1))
	w.NoError(err)
	w.workers[number] = cmd
}

func (w *storm) tasks() []store.Task {
	all, err := w.Store.List(w.t.Context(), store.Selection{})
	w.NoError(err)
	return all
}

// enough reports whether all keys have had tasks, most of which have ended, and enough has happened.
func (w *storm) enough() bool {
	ofKeys, left := map[string]bool{}, 0
	for _, t := range w.all() {
		if strings.HasPrefix(string(t.Data), "key ") {
			ofKeys[string(t.Data)] = true
			if t.Runs() {
				left++
			}
		}
	}
	happened := min(w.kills, w.stops, w.lost, w.ticks+1, len(w.suspensions), len(w.cancelled), len(w.purged))
	return len(ofKeys) == keys() && left < keys()/2 && happened > 1 && w.carried > 0
}

// all returns all tasks, including deleted ones.
func (w *storm) all() map[store.ID]store.Task {
	all := maps.Clone(w.there)
	maps.Copy(all, w.purged)
	return all
}

// pause pauses a kind, or ends its pause.
func (w *storm) pause() {
	names := slices.Sorted(maps.Keys(kinds))
	kind := names[rand.IntN(len(names))]
	if w.paused[kind] != nil {
		w.endPause(kind)
	} else if rand.IntN(3) == 0 {
		made, err := w.Store.SetPaused(w.t.Context(), kind, true)
		w.NoError(err)
		w.True(made)
		w.paused[kind] = w.tokens(kind)
	}
}

// endPause ends a pause, in which no task of the kind was claimed.
func (w *storm) endPause(kind string) {
	for id, token := range w.tokens(kind) {
		w.Equal(w.paused[kind][id], token, "a task of a kind that is paused was claimed: %d", id)
	}
	made, err := w.Store.SetPaused(w.t.Context(), kind, false)
	w.NoError(err)
	w.True(made)
	delete(w.paused, kind)
}

func (w *storm) tokens(kind string) map[store.ID]int64 {
	tokens := map[store.ID]int64{}
	all, err := w.Store.List(w.t.Context(), store.Selection{Kind: kind})
	w.NoError(err)
	for _, t := range all {
		tokens[t.ID] = t.Token
	}
	return tokens
}

// request resumes some tasks that are suspended, and suspends or cancels some that are at work.
func (w *storm) request() {
	for id := range w.suspended {
		if rand.IntN(2) == 0 {
			w.resume(id)
		}
	}
	for id, t := range w.there {
		switch {
		case t.Status != store.InProcessing || t.Wanted != "" || rand.IntN(3) > 0:
		case rand.IntN(4) == 0:
			w.ask(id, w.Store.Cancel, w.cancelled)
		case w.ask(id, w.Store.Suspend, w.suspended):
			w.suspensions[id]++
		}
	}
}

// ask makes a request, and keeps the task as it is then in made. It reports whether the request was accepted. On a slow machine
// the task may be cancelled and purged by then, and is kept as it was at the latest look: a stage may have finished since.
func (w *storm) ask(id store.ID, request func(context.Context, store.ID) (bool, error), made map[store.ID]store.Task) bool {
	ok, err := request(w.t.Context(), id)
	w.NoError(err)
	if !ok {
		return false
	}
	now, err := w.Store.Get(w.t.Context(), id)
	if errors.Is(err, store.ErrNotFound) {
		w.GreaterOrEqual(time.Since(w.looked), retention, "%v", w.there[id])
		w.unseen[id] = true
		now, err = w.there[id], nil
	}
	w.NoError(err)
	made[id], w.there[id] = now, now
	return true
}

// resume ends a suspension.
func (w *storm) resume(id store.ID) {
	made, err := w.Store.Resume(w.t.Context(), id, false)
	w.NoError(err)
	w.True(made, "%v", w.suspended[id])
	delete(w.suspended, id)
}

// look compares the tasks with what was seen before.
func (w *storm) look() {
	now, there := time.Now(), map[store.ID]store.Task{}
	for _, t := range w.tasks() {
		there[t.ID] = t
		if !t.Changed.Equal(w.there[t.ID].Changed) {
			w.changed = now
		}
		w.progress(t)
		w.rests(t, w.suspended, store.Suspended, store.Suspended)
		w.rests(t, w.cancelled, store.Canceled, store.Canceled)
		if t.Attempt > w.there[t.ID].Attempt {
			w.lost++
		}
		w.NotEqual(store.Failed, t.Status, t.Failure)
	}
	for id, was := range w.there {
		if _, ok := there[id]; !ok {
			w.purge(was)
		}
	}
	w.there, w.looked = there, now
}

// progress compares the progress of a task with what was seen before: until the stage has finished there is no less.
func (w *storm) progress(t store.Task) {
	n, err := progress(&t)
	w.NoError(err)
	if was, ok := w.seen[t.ID]; ok && place(t.Kind, t.Stage) <= place(t.Kind, was.ProgressStage) {
		before, _ := progress(&was)
		w.Equal(was.ProgressStage, t.ProgressStage, "%v", t)
		w.GreaterOrEqual(n, before, "%v", t)
		if t.Attempt > was.Attempt {
			w.carried++
		}
	}
	if t.ProgressStage != "" {
		w.seen[t.ID] = t
	}
}

// rests checks that a task has finished no stage since the request to suspend or cancel it.
func (w *storm) rests(t store.Task, asked map[store.ID]store.Task, s store.Status, wanted store.Status) {
	if was, ok := asked[t.ID]; ok {
		w.Equal(finished(was), finished(t), "a stage has finished after a request: %v", t)
		w.True(t.Status == s || t.Wanted == wanted, "after a request: %v", t)
	}
}

// purge notes that a task was deleted. It had ended early enough, unless the latest look is too long ago to know.
func (w *storm) purge(was store.Task) {
	if time.Since(w.looked) < retention {
		w.Equal(store.Canceled, was.Status, "%v", was)
		w.GreaterOrEqual(time.Since(was.Changed), retention, "%v", was)
	}
	w.purged[was.ID] = was
}

// place returns the place of a stage in the chain of a kind.
func place(kind, at string) int {
	return slices.Index(kinds[kind].Chain.Stages(), at)
}

// finished returns how many stages of a task have finished.
func finished(t store.Task) int { return place(t.Kind, t.Stage) / 2 }

// strike kills a process, perhaps in the middle of a Tick, and starts it again, or stops it, or lets it go on.
func (w *storm) strike(i int) {
	cmd := w.workers[i]
	since, stands := w.stopped[i]
	switch {
	case stands && time.Since(since) < 4*Lease/3:
	case stands:
		w.NoError(cmd.Process.Signal(syscall.SIGCONT))
		delete(w.stopped, i)
	case rand.IntN(2) == 0:
		w.Stop(w.t, cmd)
		w.stopped[i] = time.Now()
		w.stops++
	default:
		how := syscall.SIGKILL
		if rand.IntN(2) == 0 {
			how = syscall.SIGUSR1
			w.ticks++
		}
		w.NoError(cmd.Process.Signal(how))
		w.ErrorContains(cmd.Wait(), "signal: ")
		w.kills++
		w.start(i)
	}
}

// finish works on the remaining tasks.
func (w *storm) finish() {
	e, err := stage.New(config(w.Store, w.Step, nil, true))
	w.NoError(err)
	ctx, stop := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	all.Go(func() { err = e.Run(ctx) })
	w.Eventually(func() bool {
		return !slices.ContainsFunc(w.tasks(), func(t store.Task) bool { return t.Runs() })
	}, 2*time.Minute, 20*time.Millisecond)
	stop()
	all.Wait()
	w.NoError(err)
}

func (w *storm) judge() {
	w.look()
	ofKey, ran, recount := map[string]int{}, map[string][]time.Time{}, map[store.Count]int{}
	rows := 0
	for _, id := range slices.Sorted(maps.Keys(w.all())) {
		t, there := w.there[id]
		if there {
			recount[store.Count{Kind: t.Kind, Stage: t.Stage, Status: t.Status}]++
			w.ended(t)
		} else {
			t = w.purged[id]
		}
		if w.unseen[id] {
			rows += w.count(fmt.Sprintf("%s WHERE task = %d", w.Steps, id))
		} else {
			rows += min(finished(t), writes[t.Kind])
		}
		name, text, _ := strings.Cut(string(t.Data), " ")
		if name == "key" {
			if there {
				ofKey[text]++
			}
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		w.NoError(err)
		w.False(at.After(t.Created), "before its time: %v", t)
		ran[name] = append(ran[name], at)
	}
	for key, n := range ofKey {
		w.Equal(1, n, "tasks with the key %s", key)
	}
	w.Len(ran, len(ticks))
	for name, all := range ran {
		for i, at := range all[1:] {
			w.Equal(all[i].Add(ticks[name].every), at, "each tick of %s once", name)
		}
	}
	counts, err := w.Store.Counts(w.t.Context())
	w.NoError(err)
	for _, c := range counts {
		n := c.N
		c.N = 0
		w.Equal(recount[c], n, "%v", c)
		delete(recount, c)
	}
	w.Empty(recount)
	w.Equal(rows, w.count(w.Steps))
	w.Equal(rows, w.count(`(SELECT DISTINCT task, stage FROM `+w.Steps+`) AS steps`), "each stage was committed once")
}

// ended checks how a task has ended.
func (w *storm) ended(t store.Task) {
	failures, err := w.Store.Failures(w.t.Context(), t.ID)
	w.NoError(err)
	if _, cancelled := w.cancelled[t.ID]; cancelled {
		w.Equal(store.Canceled, t.Status, "%v", t)
	} else {
		w.Equal("DONE NORMAL", t.Stage+" "+string(t.Status), "%v: %s", t.ID, t.Failure)
	}
	for _, f := range failures {
		w.Equal("stage: the worker was lost", f.Text, "an attempt is counted for lost leases only")
	}
}

func (w *storm) count(from string) (n int) {
	w.NoError(w.DB.QueryRow(`SELECT count(*) FROM ` + from).Scan(&n))
	return n
}
