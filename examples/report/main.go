// Command report makes reports on the words of files, in stages that outlive it: kill it at any moment, start it
// again, and it goes on.
//
//	go run . build *.md
//	go run . list
//	go run . show 1
//
// While one process builds, others may help it (build), look (list, show), and step in (suspend, resume, cancel).
//
// Ctrl-C ends it in order: what it worked on can be gone on with at once. What a killed process worked on is taken up
// when its lease has ended, 5 s after it was heard of last (-lease). That counts as a failure of the stage, since it may
// be what kills its workers: after a hundred (-attempts) it has failed for good, until somebody resumes it (resume -failed).
//
// The status is 0 after an orderly end, also one that a signal has asked for; 1 if something has failed, such as a
// file that cannot be read, or standard output that cannot be written; 2 if it does not understand what it is to do.
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

	"github.com/daimon-go/daimon/examples/internal/tool"
	"github.com/daimon-go/daimon/stage"
)

// command is what the first argument says.
type command struct {
	name, arguments, does string

	flags func(*options)       // beside -db; may be nil
	check func(*options) error // what is behind the flags
	run   func(context.Context, *options) error
}

// commands is a function since a variable would refer to itself, by way of usage.
func commands() []command {
	return []command{
		{"build", "[flags] [FILE...]", "add files, and make reports until nothing is left to be done", buildFlags, files, build},
		{"list", "[flags]", "say how matters stand", nil, nothing, list},
		{"show", "[flags] ID...", "print finished reports", nil, ids, show},
		{"suspend", "[flags] ID...", "take tasks out of work until they are resumed", nil, ids, suspend},
		{"resume", "[flags] ID...", "let suspended tasks go on", resumeFlags, ids, resume},
		{"cancel", "[flags] ID...", "end tasks for good", nil, ids, cancel},
		{"schema", "", "print the SQL of the tables", nil, nothing, schema},
	}
}

// options are what the command line says, whatever the command.
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
		flag.StringVar(&o.db, "db", "report.db", "the `file` that has the database")
	}
	if c.flags != nil {
		c.flags(&o)
	}
	flag.CommandLine.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: report %s %s\n%s\n", c.name, c.arguments, c.does)
		flag.PrintDefaults()
	}
	name := "report " + c.name
	tool.Parse(name, func() error { return c.check(&o) })
	if err := errors.Join(c.run(context.Background(), &o), o.out.failure()); err != nil {
		exit(name, err, 1)
	}
}

// chosen is the command that args begin with.
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
	flag.IntVar(&o.workers, "workers", 8, "the `number` of files that are worked on at a time")
	flag.IntVar(&o.attempts, "attempts", 100, "the `number` of times that a stage is begun until it has failed for good")
	flag.BoolVar(&o.stay, "stay", false, "go on when nothing is left to be done, for what others add")
	tool.Duration(&o.lease, "lease", 5*time.Second,
		"the `duration` for which a task stays with a process that is not heard of")
	tool.Duration(&o.pace, "pace", 0,
		"the `duration` of a pause after each line that is read or written, to look at while it works")
}

func resumeFlags(o *options) {
	flag.BoolVar(&o.failed, "failed", false, "those that have failed, too")
}

// least is the shortest lease that a loaded machine can hold.
const least = 100 * time.Millisecond

// files takes the arguments as files, and looks at the flags of build.
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
	if err := tool.NoArguments(); err != nil {
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

// exit says what is wrong, in one sentence; of several tasks, in one for each.
func exit(name string, err error, code int) {
	for sentence := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, sentence)
	}
	os.Exit(code)
}
