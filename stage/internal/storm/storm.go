//go:build unix

// Package storm kills and stops processes that work on the tasks of one store, which have keys, priorities, queues, periodic
// tasks, progress, snoozes and pauses. No task is suspended or cancelled. Tests of stores that processes share use it.
package storm

import (
	"bytes"
	"context"
	"database/sql"
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
)

// Site is where a storm takes place.
type Site struct {
	Store stage.Store // which counts its tasks
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
	paused  map[string]map[stage.ID]int64 // the tokens of the tasks when the pause of their kind had begun
	seen    map[stage.ID]stage.Task       // the latest one with progress

	kills, stops, lost, carried int
}

// Run kills and stops processes, and pauses kinds, at random moments, until enough has happened. Then the processes end, and an
// engine of this process does what is left. All tasks finish, each stage was committed once, there is one task for each key
// and each tick, no task was claimed while its kind was paused, no progress was lost that a heartbeat had stored, and the
// counts of the store are right.
func Run(t testing.TB, s Site) {
	w := &storm{
		Assertions: require.New(t), Site: s, t: t,
		stopped: map[int]time.Time{}, paused: map[string]map[stage.ID]int64{}, seen: map[stage.ID]stage.Task{},
	}
	for i := range w.workers {
		w.start(i)
	}
	for end := time.Now().Add(4 * time.Minute); !w.enough(); {
		w.True(time.Now().Before(end), "the tasks do not end: %v", w)
		w.pause()
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
		w.resume(kind)
	}
	w.finish()
	w.verdict()
	t.Log(w)
}

func (w *storm) String() string {
	return fmt.Sprintf("%d kills, %d stops, %d leases lost, %d times with progress", w.kills, w.stops, w.lost, w.carried)
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

func (w *storm) tasks() []stage.Task {
	all, err := w.Store.List(w.t.Context(), stage.Selection{})
	w.NoError(err)
	return all
}

// enough reports whether all keys have tasks, most of which have ended, and enough has happened.
func (w *storm) enough() bool {
	tasks, left := 0, 0
	w.lost = 0
	for _, t := range w.tasks() {
		w.lost += max(0, int(t.Token)-1) // claims after the first one
		if snoozes(t.ID) && t.Token > 1 {
			w.lost--
		}
		if strings.HasPrefix(string(t.Data), "key ") {
			tasks++
			if t.Runs() {
				left++
			}
		}
	}
	return tasks == keys() && left < tasks/2 && min(w.kills, w.stops, w.lost) > 1 && w.carried > 0
}

// pause pauses a kind, or ends its pause.
func (w *storm) pause() {
	names := slices.Sorted(maps.Keys(kinds))
	kind := names[rand.IntN(len(names))]
	if w.paused[kind] != nil {
		w.resume(kind)
	} else if rand.IntN(3) == 0 {
		made, err := w.Store.SetPaused(w.t.Context(), kind, true)
		w.NoError(err)
		w.True(made)
		w.paused[kind] = w.tokens(kind)
	}
}

// resume ends a pause, in which no task of the kind was claimed.
func (w *storm) resume(kind string) {
	for id, token := range w.tokens(kind) {
		w.Equal(w.paused[kind][id], token, "a task of a kind that is paused was claimed: %d", id)
	}
	made, err := w.Store.SetPaused(w.t.Context(), kind, false)
	w.NoError(err)
	w.True(made)
	delete(w.paused, kind)
}

func (w *storm) tokens(kind string) map[stage.ID]int64 {
	tokens := map[stage.ID]int64{}
	all, err := w.Store.List(w.t.Context(), stage.Selection{Kind: kind})
	w.NoError(err)
	for _, t := range all {
		tokens[t.ID] = t.Token
	}
	return tokens
}

// look compares the progress of tasks with what was seen before: until the stage has finished there is no less.
func (w *storm) look() {
	for _, t := range w.tasks() {
		n, err := progress(&t)
		w.NoError(err)
		if was, ok := w.seen[t.ID]; ok && place(t.Kind, t.Stage) <= place(t.Kind, was.ProgressStage) {
			before, _ := progress(&was)
			w.Equal(was.ProgressStage, t.ProgressStage, "%v", t)
			w.GreaterOrEqual(n, before, "%v", t)
			if t.Token > was.Token && !snoozes(t.ID) {
				w.carried++
			}
		}
		if t.ProgressStage != "" {
			w.seen[t.ID] = t
		}
	}
}

// place returns the place of a stage in the chain of a kind.
func place(kind, at string) int {
	return slices.IndexFunc(kinds[kind].Chain.Stages(), func(s stage.Stage) bool { return s.Name == at })
}

// strike kills a process and starts it again, or stops it, or lets it go on.
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
		w.NoError(cmd.Process.Kill())
		w.ErrorContains(cmd.Wait(), "killed")
		w.kills++
		w.start(i)
	}
}

// finish works on what is left.
func (w *storm) finish() {
	e, err := stage.New(config(w.Store, w.Step, nil, true))
	w.NoError(err)
	ctx, stop := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	all.Go(func() { err = e.Run(ctx) })
	w.Eventually(func() bool {
		return !slices.ContainsFunc(w.tasks(), func(t stage.Task) bool { return t.Runs() })
	}, 2*time.Minute, 20*time.Millisecond)
	stop()
	all.Wait()
	w.NoError(err)
}

func (w *storm) verdict() {
	ofKey, ran, recount := map[string]int{}, map[string][]time.Time{}, map[stage.Count]int{}
	rows := 0
	for _, t := range w.tasks() {
		w.Equal("DONE NORMAL", t.Stage+" "+string(t.Status), "%v: %s", t.ID, t.Failure)
		failures, err := w.Store.Failures(w.t.Context(), t.ID)
		w.NoError(err)
		w.Empty(failures, "an attempt is counted for lost leases only")
		recount[stage.Count{Kind: t.Kind, Stage: t.Stage, Status: t.Status}]++
		rows += writes[t.Kind]
		name, text, _ := strings.Cut(string(t.Data), " ")
		if name == "key" {
			ofKey[text]++
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		w.NoError(err)
		w.False(at.After(t.Created), "before its time: %v", t)
		ran[name] = append(ran[name], at)
	}
	w.Len(ofKey, keys())
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

func (w *storm) count(from string) (n int) {
	w.NoError(w.DB.QueryRow(`SELECT count(*) FROM ` + from).Scan(&n))
	return n
}
