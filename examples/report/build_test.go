package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/stage"
)

// The counts for the repository's documents, and for files made for the test, are those of an independent counter.
func TestBuild(t *testing.T) {
	d := newDesk(t)
	paths, err := filepath.Glob("../../*.md")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for i, path := range paths {
		paths[i], err = filepath.Abs(path)
		require.NoError(t, err)
	}
	files := append(paths,
		d.write("empty", ""),
		d.write("a word", "word"),
		d.write("no word", "...\n\n — \n"),
		d.write("-flag", "A name like a flag."),
		d.write("new\nline", "A name of two lines."),
		d.write("long line", strings.Repeat("again and ", 50_000)),
		d.write("many lines", text(5000)))
	for i, path := range files {
		if here, ok := strings.CutPrefix(path, d.dir); ok {
			files[i] = "." + here // absolute paths are stored
		}
	}
	out := d.run("build", append([]string{"-lease", "15s"}, files...)...)
	for i, path := range files {
		if here, ok := strings.CutPrefix(path, "."); ok {
			files[i] = d.dir + here
		}
	}
	require.Regexp(t, `(?m)^1 .*\.md: added$`, out)
	require.Contains(t, out, fmt.Sprintf("%d \"new\\nline\": FINISHED\n", len(paths)+5))
	require.True(t, strings.HasSuffix(out, fmt.Sprintf("\n%d finished\n", len(files))), out)
	d.reports(files...)

	require.Equal(t, expected(t, files[0])+expected(t, files[1]), d.run("show", "1", "2"))
	list := strings.Split(d.run("list"), "\n")
	require.Regexp(t, `^ID +STAGE +STATUS +ATTEMPT +AGAIN +WORKER +FILE +FAILURE$`, list[0])
	require.Regexp(t, `^1 +FINISHED +NORMAL +0 +- +- +\S+\.md +-$`, list[1])
	require.Len(t, list, 1+len(files)+1)
	require.Equal(t, "nothing to do\n", d.run("build"))
}

// A file that cannot be counted fails for good, with its name, and does not affect the others.
func TestFilesWithoutAReport(t *testing.T) {
	d := newDesk(t)
	d.write("good", text(3))
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

// A report is about the file as it was read, not as it is now.
func TestFileRemovedBetweenTheStages(t *testing.T) {
	d := newDesk(t)
	path := d.write("file", text(1))
	report := expected(t, path)
	p := d.start("build", "-pace", "200ms", path)
	var r = d.opened(p)
	d.becomes(r, 1, "BUILDING_REPORT", stage.InProcessing)
	require.NoError(t, os.Remove(path))
	require.Zero(t, p.Exit(t))
	require.Equal(t, report, d.run("show", "1"))
}

// A file that is changed while it is read is read again.
func TestFileChangedWhileItIsRead(t *testing.T) {
	d := newDesk(t)
	path := d.write("file", text(80))
	p := d.start("build", "-pace", "100ms", path)
	r := d.opened(p)
	d.becomes(r, 1, "COUNTING_WORDS", stage.InProcessing)
	time.Sleep(300 * time.Millisecond) // some lines
	d.write("file", text(81))
	failed := d.becomes(r, 1, "CREATED", stage.Error)
	p.Signal(t, syscall.SIGINT) // or it reads on before the list is there
	require.Zero(t, p.Exit(t), p.Said())
	require.Equal(t, path+": it was changed while it was read", failed.Failure)
	require.Equal(t, 1, failed.Attempt)
	require.True(t, failed.Runs())
	require.Regexp(t, `(?m)^1 +CREATED +ERROR +1 +(in \S+|now) +- +file +`+path+`: it was changed`, d.run("list"))
	d.run("build")
	d.reports(path)
}

// Two processes share the work: each task is claimed once, by one of them, and each stage of it is done once.
func TestTwoProcesses(t *testing.T) {
	d := newDesk(t)
	var paths [2][]string
	for i := range 60 {
		paths[i%2] = append(paths[i%2], d.write(fmt.Sprintf("file %d", i), text(5+i%7)))
	}
	var both [2]*exectest.Program
	for i := range both {
		both[i] = d.start("build", append([]string{"-pace", "3ms", "-workers", "4", "-lease", "15s"}, paths[i]...)...)
	}
	for _, p := range both {
		require.Zero(t, p.ExitWithin(t, all), p.Said())
		silent(t, p)
	}
	d.reports(append(paths[0], paths[1]...)...)
	tasks, err := d.open().Store.List(context.Background(), stage.Selection{})
	require.NoError(t, err)
	shares := map[string]int{}
	for _, task := range tasks {
		require.EqualValues(t, 1, task.Token, "claims of %v", task)
		shares[task.Worker]++
	}
	require.Len(t, shares, 2, shares)
}
