package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/stage"
)

// While one process works, others look, suspend, resume and cancel.
func TestRequestsWhileAProcessWorks(t *testing.T) {
	d := newDesk(t)
	first, second, third := d.write("first", text(300)), d.write("second", text(10_000)), d.write("third", text(2))
	p := d.start("build", "-stay", "-workers", "2", "-pace", "20ms", first, second, third)
	r := d.opened(p)
	d.becomes(r, 1, "COUNTING_WORDS", stage.InProcessing)
	d.becomes(r, 2, "COUNTING_WORDS", stage.InProcessing)

	t.Run("suspend", func(t *testing.T) {
		require.Regexp(t, `^1 is (going to be )?suspended\n3 is suspended\n$`, d.run("suspend", "1", "3"))
		begun := time.Now()
		d.becomes(r, 1, "CREATED", stage.Suspended) // 300 lines take six seconds
		require.Less(t, time.Since(begun), soon)
		d.becomes(r, 3, "CREATED", stage.Suspended)
		require.Equal(t, "1 is left as it is: CREATED, SUSPENDED\n", d.run("suspend", "1"))
		d.consistent()
	})

	t.Run("list shows the workers", func(t *testing.T) {
		list := d.run("list")
		require.Regexp(t, `(?m)^2 +COUNTING_WORDS +IN_PROCESSING +0 +- +\S+:\d+:\d+ +second +-$`, list)
		require.Regexp(t, `(?m)^3 +CREATED +SUSPENDED +0 +- +- +third +-$`, list)
	})

	t.Run("resume", func(t *testing.T) {
		require.Equal(t, "1 is resumed\n2 is left as it is: COUNTING_WORDS, IN_PROCESSING\n", d.run("resume", "1", "2"))
		d.becomes(r, 1, "FINISHED", stage.Normal)
	})

	t.Run("cancel", func(t *testing.T) {
		require.Regexp(t, `^2 is (going to be )?cancelled\n1 is left as it is: FINISHED\n3 is cancelled\n$`, d.run("cancel", "2", "1", "3"))
		d.becomes(r, 2, "CREATED", stage.Cancelled)
		require.Equal(t, "2 is left as it is: CREATED, CANCELLED\n", d.run("resume", "-failed", "2"))
	})

	t.Run("what stays takes up what others add", func(t *testing.T) {
		fourth := d.write("fourth", text(1))
		require.Regexp(t, `^4 fourth: added\n(?s:.*)\n1 finished\n$`, d.run("build", fourth))
		require.False(t, p.Gone())
		exectest.Eventually(t, exectest.Patience, "news of the fourth", func() bool {
			return strings.Contains(p.Out(), "4 fourth: FINISHED\n")
		})
	})

	p.Signal(t, syscall.SIGTERM)
	require.Zero(t, p.Exit(t))
	silent(t, p)
	require.True(t, endsWith(p.Out(), "\n2 finished, 2 cancelled\n"), p.Out())
	require.Contains(t, p.Out(), "\n1 first: FINISHED\n")
	d.reports(first, d.dir+"/fourth")
}

// A task that is worked on is suspended or cancelled when its worker has seen the request, and not before.
func TestRequestsWhileAWorkerHoldsTheTask(t *testing.T) {
	d := newDesk(t)
	r, err := report.Create(t.Context(), d.db)
	require.NoError(t, err)
	defer r.Close()
	created := stage.NewTask{Kind: "report", Stage: "CREATED"}
	_, err = r.Store.Enqueue(t.Context(), created, created)
	require.NoError(t, err)
	claimed, err := r.Store.Claim(t.Context(), stage.Claim{
		Worker: "w", Kinds: []string{"report"}, Limit: 1, Length: time.Minute,
		Shows: []stage.Show{{Kind: "report", Found: "CREATED", Stage: "COUNTING_WORDS"}},
	})
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	for _, row := range []struct{ command, says string }{
		{"suspend", "1 is going to be suspended\n2 is suspended\n"},
		{"resume", "1 is resumed\n2 is resumed\n"},
		{"cancel", "1 is going to be cancelled\n2 is cancelled\n"},
		{"suspend", "1 is left as it is: COUNTING_WORDS, IN_PROCESSING, CANCEL wanted\n2 is left as it is: CREATED, CANCELLED\n"},
	} {
		require.Equal(t, row.says, d.run(row.command, "1", "2"))
	}
	_, err = r.Store.Return(t.Context(), claimed[0].Lease(), stage.Return{Stage: "CREATED", Status: stage.Normal})
	require.NoError(t, err)
	require.Equal(t, "1 is left as it is: CREATED, CANCELLED\n", d.run("cancel", "1"))
}

// A task that is suspended between its stages goes on with the second.
func TestSuspendedInTheSecondStage(t *testing.T) {
	d := newDesk(t)
	path := d.write("file", "word")
	p := d.start("build", "-pace", "1s", path)
	r := d.opened(p)
	d.becomes(r, 1, "BUILDING_REPORT", stage.InProcessing)
	require.Regexp(t, `^1 is (going to be )?suspended\n$`, d.run("suspend", "1"))
	require.Zero(t, p.Exit(t), "nothing is left to do")
	require.True(t, endsWith(p.Out(), "\n1 file: WORDS_COUNTED, SUSPENDED\n1 suspended\n"), p.Out())
	d.consistent()
	d.run("resume", "1")
	out := d.run("build")
	require.NotContains(t, out, "COUNTING_WORDS")
	require.True(t, endsWith(out, "1 file: FINISHED\n1 finished\n"), out)
	d.reports(path)
}

// opened opens a second connection to the database that p creates.
func (d *desk) opened(p *exectest.Program) *report.Reports {
	d.Helper()
	exectest.Eventually(d.T, exectest.Patience, "the first file to be added", func() bool {
		require.False(d, p.Gone() && p.Out() == "", p.Said())
		return strings.Contains(p.Out(), ": added\n")
	})
	return d.open()
}

// endsWith reports whether text, with a line feed before it, ends with end.
func endsWith(text, end string) bool { return strings.HasSuffix("\n"+text, end) }
