package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage"
)

// Files of all names and shapes have reports, which can be listed and read.
func TestBuild(t *testing.T) {
	d := newDesk(t)
	files := []string{
		d.write("empty", ""),
		d.write("a word", "word"),
		d.write("no word", "...\n\n — \n"),
		d.write("-flag", "A name like a flag."),
		d.write("new\nline", "A name of two lines."),
		d.write("long line", strings.Repeat("again and ", 50_000)),
		d.write("many lines", strings.Repeat(line, 5000)),
	}
	here := []string{"-lease", "15s"} // absolute paths are stored
	for _, path := range files {
		here = append(here, "."+strings.TrimPrefix(path, d.dir))
	}
	out := d.run("build", here...)
	require.Regexp(t, `(?m)^1 empty: added$`, out)
	require.Contains(t, out, "5 \"new\\nline\": FINISHED\n")
	require.True(t, strings.HasSuffix(out, "\n7 finished\n"), out)
	d.reports(files...)

	show := d.run("show", "2", "6")
	require.Regexp(t, `(?s)/a word\n.* 1 words\n.*/long line\n.* 500000 bytes\n.* 50000  50.0 %  again\n`, show)
	list := strings.Split(d.run("list"), "\n")
	require.Regexp(t, `^ID +STAGE +STATUS +ATTEMPT +AGAIN +WORKER +FILE +FAILURE$`, list[0])
	require.Regexp(t, `^1 +FINISHED +NORMAL +0 +- +- +\S*empty +-$`, list[1])
	require.Len(t, list, 1+len(files)+1)
	require.Equal(t, "nothing to do\n", d.run("build"))
}

// A file that cannot be counted fails for good, with its name, and does not affect the others.
func TestFilesWithoutAReport(t *testing.T) {
	d := newDesk(t)
	d.write("good", line)
	d.write("nul", "a\x00b")
	d.write("latin1", "Stra\xdfe")
	require.NoError(t, syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o600))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(d.dir, "link")))
	says := []struct{ file, sentence string }{
		{"absent", "stat " + d.dir + "/absent: no such file or directory"},
		{"link", "stat " + d.dir + "/link: no such file or directory"},
		{"good/x", "stat " + d.dir + "/good/x: not a directory"},
		{".", d.dir + ": it is a directory"},
		{"pipe", d.dir + "/pipe: it is no regular file"},
		{"nul", d.dir + "/nul: it is not a text in UTF-8"},
		{"latin1", d.dir + "/latin1: it is not a text in UTF-8"},
	}
	if os.Geteuid() != 0 { // root may read everything
		require.NoError(t, os.Chmod(d.write("secret", "x"), 0))
		says = append(says, struct{ file, sentence string }{"secret", "open " + d.dir + "/secret: permission denied"})
	}
	files := []string{"good"}
	for _, s := range says {
		files = append(files, s.file)
	}
	out, said := d.fails("build", files...)
	require.Equal(t, fmt.Sprintf("report build: no report on %d of the files; see report list\n", len(says)), said)
	require.True(t, strings.HasSuffix(out, fmt.Sprintf("\n1 finished, %d failed\n", len(says))), out)
	d.reports(filepath.Join(d.dir, "good"))
	list := d.run("list")
	for i, s := range says {
		require.Regexp(t, fmt.Sprintf(`(?m)^%d +CREATED +ERROR +1 +- +- +`, i+2), list)
		require.Contains(t, list, s.sentence+"\n")
		require.Contains(t, out, fmt.Sprintf("%d %s: CREATED, ERROR, failures: 1: %s\n", i+2, s.file, s.sentence))
	}
	require.Equal(t, "nothing to do\n", d.run("build"), "they are not tried again")

	_, said = d.fails("show", "2", "1", "99")
	require.Equal(t, "report show: there is no report 2: CREATED, ERROR, failures: 1: "+says[0].sentence+"\n"+
		"report show: stage: no such task: 99\n", said)
	d.write("absent", "here it is")
	require.Equal(t, "2 is left as it is, since it has failed (see -failed): CREATED, ERROR, failures: 1: "+says[0].sentence+"\n", d.run("resume", "2"))
	require.Equal(t, "2 is resumed\n", d.run("resume", "-failed", "2"))
	d.run("build")
	d.reports(filepath.Join(d.dir, "good"), filepath.Join(d.dir, "absent"))
}

// Two programs work on one database, in a file or on PostgreSQL, and are killed by turns while tasks are at work. After each kill the
// database has exactly the rows that belong to the stages, and in the end each report is there once.
func TestKill(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { killed(newDesk(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		tier.Need(t, tier.Full, "starts PostgreSQL")
		tier.Tool(t, "initdb")
		d := newDesk(t)
		s, err := pgserver.Shared()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		d.db, err = s.Create(fmt.Sprint("reports_", os.Getpid()))
		require.NoError(t, err)
		killed(d)
	})
}

func killed(d *desk) {
	var paths []string
	for i := range 20 {
		paths = append(paths, d.write(fmt.Sprintf("file %d", i), strings.Repeat(line, 20+i)))
	}
	flags := []string{"-pace", "3ms", "-workers", "3", "-lease", "300ms", "-attempts", "1000"}
	programs := []*exectest.Program{d.start("build", append(flags, paths...)...)}
	r := d.opened(programs[0])
	programs = append(programs, d.start("build", flags...))
	left := func() (n int) {
		tasks, err := r.Store.List(context.Background(), stage.Selection{})
		require.NoError(d, err)
		for _, task := range tasks {
			if task.Stage != "FINISHED" {
				n++
			}
		}
		return n
	}
	for i := range 6 {
		exectest.Eventually(d.T, exectest.Patience, "a task at work", func() bool {
			held, err := r.Store.List(context.Background(), stage.Selection{Status: stage.InProcessing})
			return err == nil && (len(held) > 0 || left() == 0)
		})
		programs[i%2].Signal(d.T, syscall.SIGKILL)
		exectest.Eventually(d.T, exectest.Patience, "the end", programs[i%2].Gone)
		d.consistent()
		programs[i%2] = d.start("build", flags...)
	}
	for _, p := range programs {
		require.Zero(d, p.Exit(d.T), p.Said())
	}
	d.run("build", "-attempts", "1000") // what was held by the last one that was killed
	d.reports(paths...)
}

// A signal ends it in order and at once: every task is back at a static stage, can be taken up at once, and has lost no attempt.
// Before that, others have suspended, resumed and cancelled tasks.
func TestOthersStepInAndASignalEndsIt(t *testing.T) {
	d := newDesk(t)
	long, short, gone := d.write("long", strings.Repeat(line, 10_000)), d.write("short", line), d.write("gone", strings.Repeat(line, 10_000))
	p := d.start("build", "-pace", "20ms", "-workers", "2", long, short, gone)
	r := d.opened(p)
	d.becomes(r, 1, "COUNTING_WORDS", stage.InProcessing)
	require.Regexp(t, `^1 is (going to be )?suspended\n$`, d.run("suspend", "1"))
	d.becomes(r, 1, "CREATED", stage.Suspended)
	require.Equal(t, "1 is left as it is: CREATED, SUSPENDED\n", d.run("suspend", "1"))
	d.becomes(r, 2, "FINISHED", stage.Normal)
	d.becomes(r, 3, "COUNTING_WORDS", stage.InProcessing)
	require.Regexp(t, `(?m)^3 +COUNTING_WORDS +IN_PROCESSING +0 +- +\S+:\d+:\d+ +gone +-$`, d.run("list"))
	require.Equal(t, "1 is resumed\n", d.run("resume", "1"))
	require.Regexp(t, `^3 is (going to be )?cancelled\n2 is left as it is: FINISHED\n$`, d.run("cancel", "3", "2"))
	d.becomes(r, 3, "CREATED", stage.Cancelled)
	p.Signal(t, syscall.SIGTERM)
	require.Zero(t, p.Exit(t))
	d.consistent()
	task := d.task(r, 1)
	require.Equal(t, "CREATED", task.Stage)
	require.Zero(t, task.Attempt)
	require.True(t, task.Runs())
}

// A command line that is not understood gives one sentence, and no database is created.
func TestWrongArguments(t *testing.T) {
	d := newDesk(t)
	for _, wrong := range []struct {
		arguments, says string
		status          int
	}{
		{"", "report: missing command; -h lists them", 2},
		{"biuld", `report: no command "biuld"; -h lists them`, 2},
		{"build -workers 0", "report build: -workers must be above 0: 0", 2},
		{"build file -pace 1ms", `report build: flags come before files: "-pace"`, 2},
		{"build -db= file", "report build: -db needs a file", 2},
		{"list 1", `report list: unexpected argument "1"`, 2},
		{"show", "report show: missing ID", 2},
		{"suspend x", `report suspend: no ID of a task: "x"`, 2},
		{"list -db none", "report list: there is no database none; build makes one", 1},
	} {
		cmd := program.Command(t, strings.Fields(wrong.arguments)...)
		cmd.Dir = d.dir
		p := exectest.Start(t, cmd)
		require.Equal(t, wrong.status, p.Exit(t))
		require.Empty(t, p.Out())
		require.Equal(t, wrong.says+"\n", p.Said())
	}
	made, err := os.ReadDir(d.dir)
	require.NoError(t, err)
	require.Empty(t, made)
	require.Equal(t, report.Schema(), d.runAlone("schema"))
	require.Contains(t, d.runAlone("help"), "  suspend  [flags] ID...")
}
