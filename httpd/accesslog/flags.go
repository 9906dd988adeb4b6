package accesslog

import (
	"flag"
	"fmt"
	"slices"
)

// Flags defines -access-log and -access-log-format, whose defaults are Path and Format. With Flags a Log is an Option of package
// program. If Path is empty and the flag is not given, there is no log.
func (l *Log) Flags(fs *flag.FlagSet) (check func() error) {
	fs.StringVar(&l.Path, "access-log", l.Path, "a `file` to which a line is appended for each request; -: standard output")
	fs.Var((*formatFlag)(&l.Format), "access-log-format", "the `format` of these lines: combined, common or json")
	return func() error {
		l.off = l.Path == ""
		return nil
	}
}

// formatFlag is a Format as a flag.Value.
type formatFlag Format

func (f *formatFlag) String() string { return formats[*f] }

func (f *formatFlag) Set(name string) error {
	i := slices.Index(formats, name)
	if i < 0 {
		return fmt.Errorf("%q is not combined, common or json", name)
	}
	*f = formatFlag(i)
	return nil
}
