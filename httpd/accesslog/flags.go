package accesslog

import (
	"flag"

	"github.com/daimon-go/daimon/httpd"
)

// Flags defines -access-log and -access-log-format, whose defaults are Path and Format. With Flags a Log is an Option of package
// program. If the Path is empty then, there is no log.
func (l *Log) Flags(fs *flag.FlagSet) (check func() error) {
	fs.StringVar(&l.Path, "access-log", l.Path, "a `file` to which a line is appended for each request; -: standard output")
	fs.Var(&l.Format, "access-log-format", "the `format` of these lines: combined, common or json")
	return func() error {
		l.off = l.Path == ""
		return nil
	}
}

// OnResponse returns Add, or nil if the flags have asked for no log. It is for the field of that name of an httpd.Server. After
// parsing a server without a log has no cost; Add, which it is before, does nothing then.
func (l *Log) OnResponse() func(*httpd.Response, *httpd.Request) {
	if l.off {
		return nil
	}
	return l.Add
}
