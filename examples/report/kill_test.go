package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/stage"
)

// The program is killed again and again at random moments, and goes on: in the end each report is there once, and right.
// After each kill the database has exactly the rows that belong to the stages.
func TestKill(t *testing.T) {
	d := newDesk(t)
	var paths []string
	for i := range 30 {
		paths = append(paths, d.write(fmt.Sprintf("file %d", i), text(20+i%20)))
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	flags := []string{"-pace", "3ms", "-workers", "3", "-lease", "300ms", "-attempts", "1000"}

	p := d.start("build", append(flags, paths...)...)
	r := d.opened(p)
	exectest.Eventually(t, exectest.Patience, "all files to be added", func() bool {
		tasks, err := r.Store.List(context.Background(), stage.Selection{})
		return err == nil && len(tasks) == len(paths)
	})
	kills, halfway, latest := 0, 0, 400*time.Millisecond
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) || halfway == 0; {
		time.Sleep(time.Duration(random.Int64N(int64(latest))))
		if p.Gone() {
			require.Zero(t, p.Exit(t), p.Said())
			break
		}
		if kills%10 == 9 && halfway == 0 {
			latest *= 2 // a slow machine has not come to work on any task by then
		}
		p.Signal(t, syscall.SIGKILL)
		exectest.Eventually(t, exectest.Patience, "the end", p.Gone)
		kills++
		d.consistent()
		held, err := r.Store.List(context.Background(), stage.Selection{Status: stage.InProcessing})
		require.NoError(t, err)
		halfway += len(held)
		p = d.start("build", flags...)
	}
	if !p.Gone() {
		p.Signal(t, syscall.SIGKILL)
	}
	exectest.Eventually(t, exectest.Patience, "the end", p.Gone)
	p = d.start("build", "-pace", "3ms", "-attempts", "1000", "-lease", "15s") // which a slow machine does not lose
	require.Zero(t, p.ExitWithin(t, all), p.Said())
	silent(t, p)
	t.Log(kills, "kills;", halfway, "tasks were found in processing after them")
	require.NotZero(t, halfway)
	d.reports(paths...)
}

// A signal ends it in order and at once: every task is back at a static stage, can be taken up at once, and has lost no
// attempt.
func TestSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			d := newDesk(t)
			long, short, waits := d.write("long", text(10_000)), d.write("short", text(1)), d.write("waits", text(1))
			p := d.start("build", "-pace", "300ms", "-workers", "2", long, short, waits)
			r := d.opened(p)
			d.becomes(r, 1, "COUNTING_WORDS", stage.InProcessing)
			d.becomes(r, 2, "BUILDING_REPORT", stage.InProcessing)

			p.Signal(t, sig)
			require.Zero(t, p.ExitWithin(t, soon))
			silent(t, p)
			require.Contains(t, p.Out(), "\n3 to go on with\n")
			d.consistent()
			for i, at := range []string{"CREATED", "WORDS_COUNTED", "CREATED"} {
				task := d.task(r, stage.ID(i+1))
				require.Equal(t, at, task.Stage)
				require.Equal(t, stage.Normal, task.Status)
				require.Zero(t, task.Attempt)
				require.True(t, task.Runs() && !task.Due.After(time.Now()), "claimed by the next, at once")
			}
			require.True(t, endsWith(d.run("build"), "\n3 finished\n"))
			d.reports(long, short, waits)
		})
	}
}

// All files of one build are added or none, whenever it is killed.
func TestKilledWhileFilesAreAdded(t *testing.T) {
	d := newDesk(t)
	d.write("f", text(1000))
	files := strings.Fields(strings.Repeat("f ", 5000))
	r, err := report.Create(t.Context(), d.db)
	require.NoError(t, err)
	defer r.Close()
	added := func() int {
		tasks, err := r.Store.List(t.Context(), stage.Selection{})
		require.NoError(t, err)
		return len(tasks)
	}
	for i := range 5 {
		before := added()
		p := d.start("build", append([]string{"-pace", "1s"}, files...)...)
		time.Sleep(time.Duration(i) * 60 * time.Millisecond)
		p.Signal(t, syscall.SIGKILL)
		exectest.Eventually(t, exectest.Patience, "the end", p.Gone)
		require.Contains(t, []int{before, before + len(files)}, added())
	}
	before := added()
	files = files[:500] // so that a slow machine adds them in time
	p := d.start("build", append([]string{"-pace", "1s"}, files...)...)
	d.opened(p)
	p.Signal(t, syscall.SIGTERM)
	require.Zero(t, p.ExitWithin(t, soon))
	require.Regexp(t, `\n\d+ to go on with\n$`, p.Out())
	require.Equal(t, before+len(files), added())
}
