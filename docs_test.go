package daimon_test

import (
	"cmp"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd/accesslog"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

// flagRow is a row of a table of flags: the name, the kind of its value, the default.
var flagRow = regexp.MustCompile("(?m)^\\| `-([a-z-]+)` \\| ([^|]+) \\| ([^|]+) \\|")

// docs/flags.md names all flags that a program of package program may have, with their values and defaults.
func TestDocumentedFlagsAreTheFlagsOfPrograms(t *testing.T) {
	command, arguments := flag.CommandLine, os.Args
	defer func() { flag.CommandLine, os.Args = command, arguments }()
	flag.CommandLine, os.Args = flag.NewFlagSet("program", flag.PanicOnError), os.Args[:1]
	server := program.Server{Addr: "of the program", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{Messages: -1}, &secure.TLS{}, &accesslog.Log{}, &inspect.Inspector{},
	}}
	server.Parse()
	defined := map[string][2]string{}
	flag.CommandLine.VisitAll(func(f *flag.Flag) {
		value, _ := flag.UnquoteUsage(f)
		defined[f.Name] = [2]string{cmp.Or(value, "–"), cmp.Or(f.DefValue, "–")}
	})
	documented := map[string][2]string{}
	for _, row := range flagRow.FindAllStringSubmatch(text(t, "docs/flags.md"), -1) {
		documented[row[1]] = [2]string{strings.TrimSpace(row[2]), strings.TrimSpace(row[3])}
	}
	require.Equal(t, defined, documented)
}
