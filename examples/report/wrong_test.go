package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/stage"
)

// A command line that is not understood gives one sentence, and no database is created.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for _, wrong := range []struct{ arguments, says string }{
		{"", "report: missing command; -h lists them"},
		{"biuld", `report: no command "biuld"; -h lists them`},
		{"-db x list", `report: the command comes before the flags: "-db"`},

		{"build -workers 0", "report build: -workers must be above 0: 0"},
		{"build -workers many", `report build: invalid value "many" for flag -workers: parse error`},
		{"build -attempts -1", "report build: -attempts must be above 0: -1"},
		{"build -lease 99ms", "report build: -lease must be at least 100ms: 99ms"},
		{"build -pace -1ms", "report build: -pace must not be negative: -1ms"},
		{"build -pace 3 file", `report build: invalid value "3" for flag -pace: it needs a unit, as in 3s`},
		{"build -failed", "report build: flag provided but not defined: -failed"},
		{"build file -pace 1ms", `report build: flags come before files: "-pace"`},
		{"build -db= file", "report build: -db needs a file"},

		{"list 1", `report list: unexpected argument "1"`},
		{"list -db=", "report list: -db needs a file"},
		{"schema -db x", "report schema: flag provided but not defined: -db"},

		{"show", "report show: missing ID"},
		{"suspend", "report suspend: missing ID"},
		{"resume -failed", "report resume: missing ID"},
		{"cancel", "report cancel: missing ID"},
		{"suspend x", `report suspend: no ID of a task: "x"`},
		{"suspend 1 0", `report suspend: no ID of a task: "0"`},
		{"cancel 1 -1", `report cancel: flags come before IDs: "-1"`},
		{"show 99999999999999999999", `report show: no ID of a task: "99999999999999999999"`},
		{"suspend -failed 1", "report suspend: flag provided but not defined: -failed"},
	} {
		t.Run(wrong.arguments, func(t *testing.T) {
			dir := t.TempDir()
			cmd := program.Command(t, strings.Fields(wrong.arguments)...)
			cmd.Dir = dir
			p := exectest.Start(t, cmd)
			require.Equal(t, 2, p.Exit(t))
			require.Empty(t, p.Out())
			require.Equal(t, wrong.says+"\n", p.Said())
			made, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, made)
		})
	}
	p := start(t, "build", "") // a shell's "$nothing"
	require.Equal(t, 2, p.Exit(t))
	require.Equal(t, "report build: a file needs a name\n", p.Said())
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for arguments, says := range map[string]string{
		"-h": "usage: report COMMAND [flags] [arguments]\n", "help": "  suspend  [flags] ID...", "--help": "  build ",
		"build -h": "usage: report build [flags] [FILE...]\n", "resume -help": "-failed",
	} {
		p := start(t, strings.Fields(arguments)...)
		require.Zero(t, p.Exit(t))
		require.Contains(t, p.Said(), says)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	p := start(t, "schema")
	require.Zero(t, p.Exit(t))
	require.Equal(t, report.Schema(), p.Out())
	for _, table := range []string{"daimon_task", "counts", "words", "reports"} {
		require.Contains(t, p.Out(), "CREATE TABLE IF NOT EXISTS "+table+" (")
	}
}

// A file that is not a database gives an error of one sentence, and so does an unknown task.
func TestNoDatabase(t *testing.T) {
	d := newDesk(t)
	for _, command := range []string{"list", "show 1", "suspend 1", "resume 1", "cancel 1"} {
		words := strings.Fields(command)
		_, said := d.fails(words[0], words[1:]...)
		require.Equal(t, "report "+words[0]+": there is no database "+d.db+"; build makes one\n", said)
		require.NoFileExists(t, d.db)
	}
	file := d.write("file", text(100))
	for name, db := range map[string]string{
		"a text": file, "a directory": d.dir, "in no directory": filepath.Join(d.dir, "absent", "report.db"),
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "build", "-db", db, file)
			require.Equal(t, 1, p.Exit(t))
			require.Empty(t, p.Out())
			require.Equal(t, 1, strings.Count(p.Said(), "\n"), p.Said())
			require.Contains(t, p.Said(), db)
		})
	}
	require.Equal(t, text(100), read(t, file))

	d.run("build", file)
	for _, command := range []string{"show", "suspend", "resume", "cancel"} {
		_, said := d.fails(command, "2")
		require.Equal(t, "report "+command+": stage: no such task: 2\n", said)
	}
}

// If standard output cannot be written the command fails, but its work is done.
func TestOutputThatCannotBeWritten(t *testing.T) {
	d := newDesk(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil { // without /dev/full: a file that is open only for reading
		full, err = os.Open(d.write("file", ""))
	}
	require.NoError(t, err)
	defer full.Close()
	unheard := func(command string, arguments ...string) {
		t.Helper()
		if command != "schema" {
			arguments = append([]string{"-db", d.db}, arguments...)
		}
		cmd := program.Command(t, append([]string{command}, arguments...)...)
		cmd.Dir, cmd.Stdout = d.dir, full
		p := exectest.Start(t, cmd)
		require.Equal(t, 1, p.Exit(t))
		require.Regexp(t, "^report "+command+": write /dev/stdout: .*\n$", p.Said())
	}
	unheard("build", d.write("a", text(3)), d.write("b", text(3)))
	d.reports(d.dir+"/a", d.dir+"/b")
	unheard("list")
	unheard("show", "1", "2")
	unheard("schema")
	r := d.open()
	ids, err := r.Store.Enqueue(t.Context(), stage.NewTask{Kind: "report", Stage: "CREATED"})
	require.NoError(t, err)
	for _, row := range []struct {
		command string
		then    stage.Status
	}{{"suspend", stage.Suspended}, {"resume", stage.Resumed}, {"cancel", stage.Cancelled}} {
		unheard(row.command, "3")
		require.Equal(t, row.then, d.task(r, ids[0]).Status)
	}
}

func read(t *testing.T, path string) string {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}
