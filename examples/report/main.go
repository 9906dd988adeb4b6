// Command report makes reports on the words of files, in stages. Kill it at any moment and start it again: it goes on
// after the last stage that has ended.
//
//	go run . build *.md
//	go run . list
//	go run . show 1
//
// With -db postgres://user@host/database the tasks and the reports are in PostgreSQL, and processes of several machines may work
// on them; each reads the files under the same paths.
//
// While one process builds, others may work beside it (build), look (list, show), and intervene (suspend, resume, cancel).
//
// Ctrl-C ends it in order: another process can go on with its tasks at once. The tasks of a killed process can be taken up
// when their leases have ended, 5 s after its last sign of life (-lease). That counts as a failure of the stage, since the
// task may be what kills its workers. After a hundred failures (-attempts) it has failed for good, until it is resumed with
// resume -failed.
//
// The status is 0 after an orderly end, also on a signal; 1 if something has failed, such as a file that cannot be read or
// standard output that cannot be written; 2 if the command line is not understood.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/stage"
)

// command is one of those that the first argument names.
type command struct {
	name, arguments, does string

	flags func(*options)       // defines flags beside -db; may be nil
	check func(*options) error // takes and checks the arguments
	run   func(context.Context, *options) error
}

// commands is a function since a variable would refer to itself, by way of usage.
func commands() []command {
	return []command{
		{"build", "[flags] [FILE...]", "add files, and make reports until nothing is left to do", buildFlags, files, build},
		{"list", "[flags]", "list all tasks", nil, nothing, list},
		{"show", "[flags] ID...", "print finished reports", nil, ids, show},
		{"suspend", "[flags] ID...", "stop work on tasks until they are resumed", nil, ids, suspend},
		{"resume", "[flags] ID...", "let suspended tasks go on", resumeFlags, ids, resume},
		{"cancel", "[flags] ID...", "end tasks for good", nil, ids, cancel},
		{"schema", "", "print the SQL of the tables of a file", nil, nothing, schema},
	}
}

// options are the values of the command line, for all commands.
type options struct {
	out *output
	db  string

	files             []string
	workers, attempts int
	lease, pace       time.Duration
	stay              bool

	ids    []stage.ID
	failed bool
}

func main() {
	c, err := chosen(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		usage(os.Stderr)
		return
	}
	if err != nil {
		exit("report", err, 2)
	}
	os.Args = os.Args[1:] // the rest is for package flag
	o := options{out: &output{to: os.Stdout}}
	if c.name != "schema" {
		flag.StringVar(&o.db, "db", "report.db", "the `database`: a file, or the URL of one of PostgreSQL, postgres://...")
	}
	if c.flags != nil {
		c.flags(&o)
	}
	flag.CommandLine.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: report %s %s\n%s\n", c.name, c.arguments, c.does)
		flag.PrintDefaults()
	}
	name := "report " + c.name
	cli.Parse(name, func() error { return c.check(&o) })
	if err := errors.Join(c.run(context.Background(), &o), o.out.failure()); err != nil {
		exit(name, err, 1)
	}
}

// chosen returns the command that args begin with.
func chosen(args []string) (command, error) {
	if len(args) == 0 {
		return command{}, errors.New("missing command; -h lists them")
	}
	switch name := args[0]; {
	case name == "-h", name == "-help", name == "--help", name == "help":
		return command{}, flag.ErrHelp
	case strings.HasPrefix(name, "-"):
		return command{}, fmt.Errorf("the command comes before the flags: %q", name)
	default:
		for _, c := range commands() {
			if c.name == name {
				return c, nil
			}
		}
		return command{}, fmt.Errorf("no command %q; -h lists them", name)
	}
}

func usage(out io.Writer) {
	fmt.Fprintln(out, "usage: report COMMAND [flags] [arguments]")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-8s %-18s %s\n", c.name, c.arguments, c.does)
	}
	fmt.Fprintln(out, "report COMMAND -h lists the flags of a command.")
}

func buildFlags(o *options) {
	flag.IntVar(&o.workers, "workers", 8, "the `number` of files to work on at a time")
	flag.IntVar(&o.attempts, "attempts", 100, "the `number` of failures after which a stage has failed for good")
	flag.BoolVar(&o.stay, "stay", false, "go on when nothing is left to do, for files that others add")
	cli.DurationVar(&o.lease, "lease", 5*time.Second,
		"the `duration` after which the tasks of a dead process are taken up again")
	cli.DurationVar(&o.pace, "pace", 0,
		"the `duration` of a pause after each line that is read or written, to watch it work")
}

func resumeFlags(o *options) {
	flag.BoolVar(&o.failed, "failed", false, "also resume tasks that have failed")
}

// least is the shortest lease that a process on a busy machine can renew in time.
const least = 100 * time.Millisecond

// files takes the arguments as files, and checks the flags of build.
func files(o *options) error {
	o.files = flag.Args()
	switch {
	case o.workers < 1:
		return fmt.Errorf("-workers must be above 0: %d", o.workers)
	case o.attempts < 1:
		return fmt.Errorf("-attempts must be above 0: %d", o.attempts)
	case o.lease < least:
		return fmt.Errorf("-lease must be at least %v: %v", least, o.lease)
	case o.pace < 0:
		return fmt.Errorf("-pace must not be negative: %v", o.pace)
	}
	for _, file := range o.files {
		switch {
		case file == "":
			return errors.New("a file needs a name")
		case strings.HasPrefix(file, "-"):
			return fmt.Errorf("flags come before files: %q", file)
		}
	}
	return database(o)
}

// ids takes the arguments as numbers of tasks.
func ids(o *options) error {
	if flag.NArg() == 0 {
		return errors.New("missing ID")
	}
	for _, arg := range flag.Args() {
		switch id, err := strconv.ParseInt(arg, 10, 64); {
		case strings.HasPrefix(arg, "-"):
			return fmt.Errorf("flags come before IDs: %q", arg)
		case err != nil || id < 1:
			return fmt.Errorf("no ID of a task: %q", arg)
		default:
			o.ids = append(o.ids, stage.ID(id))
		}
	}
	return database(o)
}

func nothing(o *options) error {
	if err := cli.NoArguments(); err != nil {
		return err
	}
	return database(o)
}

func database(o *options) error {
	if o.db == "" && flag.Lookup("db") != nil {
		return errors.New("-db needs a file")
	}
	return nil
}

// exit prints err, with a line for each of several tasks, and ends the program.
func exit(name string, err error, code int) {
	for sentence := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, sentence)
	}
	os.Exit(code)
}
