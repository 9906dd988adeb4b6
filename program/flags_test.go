package program

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// parse parses the arguments of a program.
func parse(s *Server, arguments ...string) (*flag.FlagSet, error) {
	fs := flag.NewFlagSet("server", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	check := s.define(fs)
	err := fs.Parse(arguments)
	if err == nil {
		err = check()
	}
	return fs, err
}

func parsed(t *testing.T, s *Server, arguments ...string) (drain string) {
	fs, err := parse(s, arguments...)
	require.NoError(t, err)
	return fs.Lookup("drain").DefValue
}

func TestFieldsAreTheDefaults(t *testing.T) {
	terms := shutdown.Policy{Turns: 3, Time: time.Second}
	s := Server{Addr: "unix:/x", MaxConns: 7, Config: act.Config{Schedulers: 2, Idle: demon.Busy(), Shutdown: terms}}
	require.Equal(t, "1s", parsed(t, &s))
	require.Equal(t, "unix:/x", s.Addr)
	require.Equal(t, 7, s.MaxConns)
	require.Equal(t, 2, s.Config.Schedulers)
	require.NotNil(t, s.Config.Idle)
	require.Equal(t, terms, s.Config.Shutdown)

	parsed(t, &s, "-max-conns", "-1")
	require.Equal(t, -1, s.MaxConns, "no bound, as everywhere")

	parsed(t, &s, "-addr", ":1", "-max-conns", "8", "-reactors", "3", "-idle", "interrupt", "-drain", "2s")
	require.Equal(t, Server{Addr: ":1", MaxConns: 8, Config: act.Config{
		Schedulers: 3, Shutdown: shutdown.Policy{Turns: 3, Time: 2 * time.Second, Drop: true},
	}, parsed: true}, s)
}

func TestMemoryHasAUnit(t *testing.T) {
	for text, bytes := range map[string]int{
		"0": 0, "-1": -1, "1048576": 1 << 20, "1024KiB": 1 << 20, "300MiB": 300 << 20, "1GiB": 1 << 30,
	} {
		var s Server
		parsed(t, &s, "-memory", text)
		require.Equal(t, bytes, s.Memory)
	}
	const none = "it is not a size, such as 4096, 300KiB, 64MiB or 2GiB"
	for text, says := range map[string]string{"256": "-memory must be at least 1MiB: 256", "1000KiB": "-memory must be at least 1MiB: 1000KiB",
		"": none, "MiB": none, "256MB": none, "1.5GiB": none, "99999999999GiB": none} {
		_, err := parse(&Server{}, "-memory", text)
		require.ErrorContains(t, err, says)
	}
}

func TestDrainNamesItsDefault(t *testing.T) {
	for says, terms := range map[string]shutdown.Policy{
		"30s": {}, "2s": {Time: 2 * time.Second}, "endless": shutdown.Policy{Kind: shutdown.Unbounded}, "halt": shutdown.Policy{Kind: shutdown.Halt},
	} {
		require.Equal(t, says, parsed(t, &Server{Config: act.Config{Shutdown: terms}}))
	}
}

func TestFlagsOfThePhases(t *testing.T) {
	both := []string{"-announce", "2s", "-spread", "3s", "-inactivity", "4s"}
	for name, c := range map[string]struct {
		program   shutdown.Policy
		arguments []string
		want      shutdown.Policy
	}{
		"none":           {shutdown.Policy{}, nil, shutdown.Policy{}},
		"of the default": {shutdown.Policy{}, both, shutdown.Policy{Time: 30 * time.Second, Announce: 2 * time.Second, Spread: 3 * time.Second, Inactivity: 4 * time.Second, Drop: true}},
		"of a drain":     {shutdown.Policy{}, append(both, "-drain", "9s"), shutdown.Policy{Time: 9 * time.Second, Announce: 2 * time.Second, Spread: 3 * time.Second, Inactivity: 4 * time.Second, Drop: true}},
		"turns":          {shutdown.Policy{}, []string{"-turns", "5"}, shutdown.Policy{Time: 30 * time.Second, Turns: 5, Drop: true}},
		"and no more":    {shutdown.Policy{Time: time.Minute, Turns: 7}, []string{"-turns", "0"}, shutdown.Policy{Time: time.Minute}},
		"of the program": {shutdown.Policy{Time: time.Minute, Spread: time.Second}, []string{"-drain", "9s"}, shutdown.Policy{Time: 9 * time.Second, Spread: time.Second, Drop: true}},
		"a cut":          {shutdown.Policy{}, []string{"-drain", "0"}, shutdown.Policy{Kind: shutdown.Halt, Drop: true}},
		"at once":        {shutdown.Policy{}, []string{"-drain", "0", "-announce", "5s"}, shutdown.Policy{Kind: shutdown.Halt, Announce: 5 * time.Second, Drop: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Server{Config: act.Config{Shutdown: c.program}}
			parsed(t, &s, c.arguments...)
			require.Equal(t, c.want, s.Config.Shutdown)
		})
	}
	for arguments, says := range map[string]string{
		"-spread -1s":                          `invalid value "-1s" for flag -spread: it must not be negative`,
		"-turns -1":                            "-turns must not be negative: -1",
		"-announce 20s":                        "-announce must be at most half of -drain, 30s: 20s",
		"-drain 10s -announce 4s -spread 3.1s": "-spread must be at most half of what -announce leaves of -drain, 6s: 3.1s",
		"-drain 10s -announce 5s -spread 2.5s": "",
	} {
		_, err := parse(&Server{}, strings.Fields(arguments)...)
		if says == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, says)
		}
	}
}

// option is an Option without flags. Its filter writes its name.
type option struct {
	name string
	to   *string
}

func (option) Flags(*flag.FlagSet) func() error { return nil }

func (o option) Filters() []listener.Filter {
	return []listener.Filter{func(*listener.Conn) act.Action { *o.to += o.name; return nil }}
}

// Because of this order an admission.Limiter limits clients, and not their proxies.
func TestFiltersOfOptionsComeFirst(t *testing.T) {
	said := ""
	s := Server{Options: []Option{option{"a", &said}, option{"b", &said}}}
	require.PanicsWithValue(t, "program: Listen comes after Parse, whose flags decide on the filters", func() { s.Listen("", nil) })
	parsed(t, &s)
	for _, f := range s.Listen("127.0.0.1:0", nil, option{"c", &said}.Filters()...).Filters {
		f(nil)
	}
	require.Equal(t, "abc", said)
}

func TestANilOptionPanics(t *testing.T) {
	require.PanicsWithValue(t, "program: Server.Options[1] is nil", func() { _, _ = parse(&Server{Options: []Option{option{}, nil}}) })
}

func TestCPUsOfTheReactors(t *testing.T) {
	first := thread.CPUs()[0]
	for text, want := range map[string]act.Config{
		"":                                   {},
		"auto":                               {Threads: act.Bound},
		fmt.Sprintf("%d,%[1]d-%[1]d", first): {Threads: act.Bound, CPUs: []int{first, first}},
	} {
		s := Server{Config: act.Config{Threads: act.Bound, CPUs: []int{5}}}
		_, err := parse(&s, "-cpus", text)
		require.NoError(t, err)
		require.Equal(t, want.Threads, s.Config.Threads)
		require.Equal(t, want.CPUs, s.Config.CPUs)
	}
	for text, says := range map[string]string{
		"0,x": "neither a list of CPUs, such as 0,2-5", "1-0": "neither a list", "-1": "neither a list", "0-": "neither a list", ",": "neither a list",
		fmt.Sprintf("%d,99999-2000000000", first): "the process may not use CPU 99999",
	} {
		_, err := parse(&Server{}, "-cpus", text)
		require.ErrorContains(t, err, says, text)
	}
}
