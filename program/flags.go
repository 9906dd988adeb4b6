package program

import (
	"cmp"
	"flag"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/shutdown"
)

// maxReactors is far above any number of CPUs, and far below the threads that the runtime allows (10,000).
const maxReactors = 1024

// leastMemory is less than any server needs, and tells bytes from a forgotten unit.
const leastMemory = 1 << 20

// Parse defines the flags of every program and of the Options in [flag.CommandLine], in addition to flags that the program has
// defined there, and parses the command line. If it cannot be understood, or has arguments after the flags, Parse ends the
// program with one sentence and status 2; after -h, with the list of flags and status 0.
func (s *Server) Parse() {
	check := s.define(flag.CommandLine)
	cli.Parse(name(), func() error { return cmp.Or(check(), cli.NoArguments()) })
}

// define defines all flags. The function that it returns checks their values after parsing.
func (s *Server) define(fs *flag.FlagSet) (check func() error) {
	checks := []func() error{s.flags(fs)}
	for i, o := range s.Options {
		if o == nil {
			panic(fmt.Sprintf("program: Server.Options[%d] is nil", i))
		}
		checks = append(checks, o.Flags(fs))
	}
	return func() error {
		for _, check := range checks {
			if check == nil {
				continue
			}
			if err := check(); err != nil {
				return err
			}
		}
		s.parsed = true
		return nil
	}
}

// flags defines the flags of every program.
func (s *Server) flags(fs *flag.FlagSet) (check func() error) {
	if s.Addr != "" {
		fs.StringVar(&s.Addr, "addr", s.Addr, "the address to listen on: `host:port`, or unix: and a path")
	}
	fs.IntVar(&s.MaxConns, "max-conns", s.MaxConns,
		"the largest `number` of open connections; 0: what descriptors and memory allow; less than 0: no bound")
	fs.Var((*cli.Size)(&s.Memory), "memory",
		"the largest `size` of what is queued and buffered for connections, of all reactors together, such as 256MiB; "+
			"0: half of the memory that the process may have; -1: no bound")
	fs.IntVar(&s.Config.Schedulers, "reactors", s.Config.Schedulers,
		"the `number` of reactors, each with a thread of its own; 0: one for each CPU, at most GOMAXPROCS and the CPU quota")
	fs.Func("cpus", "the `list` of CPUs to which reactors are bound, each to one of them, such as 0,2-5; auto: the ones that are used "+
		"least; empty: none", func(text string) error { return bind(&s.Config, text) })
	fs.Var(&s.Engine, "engine", "the `engine` of sockets: auto, epoll, or uring, which makes their calls in batches even when that is slower")
	idle := "" // the program has chosen
	if s.Config.Idle == nil {
		idle = "interrupt"
	}
	fs.StringVar(&idle, "idle", idle, "the `strategy` of an idle scheduler: interrupt, poll, hybrid or busy")
	p := s.Config.Shutdown.Resolved()
	before := p
	fs.Var((*drain)(&p), "drain", "the `duration` for which connections may go on after a signal; those still open then are cut")
	fs.Var((*cli.Duration)(&p.Announce), "announce",
		"the `duration` of the drain for which the end is only announced, to load balancers; at most half of it")
	fs.Var((*cli.Duration)(&p.Spread), "spread",
		"the `duration` over which idle connections end, one after the other; at most half of the rest of the drain")
	fs.Var((*cli.Duration)(&p.Inactivity), "inactivity",
		"the `duration` without any activity after which a drain ends early, when idle connections have ended; 0: none")
	fs.IntVar(&p.Turns, "turns", p.Turns,
		"the largest `number` of turns that each task, such as a connection's, gets in a drain, when idle connections have ended; 0: no bound")
	return func() error {
		if p != before {
			s.Config.Shutdown = p
		}
		rest := p.Time - p.Announce
		switch {
		case p.Turns < 0:
			return fmt.Errorf("-turns must not be negative: %d", p.Turns)
		case p.Time > 0 && p.Announce > p.Time/2:
			return fmt.Errorf("-announce must be at most half of -drain, %v: %v", p.Time, p.Announce)
		case p.Time > 0 && p.Spread > rest/2:
			return fmt.Errorf("-spread must be at most half of what -announce leaves of -drain, %v: %v", rest, p.Spread)
		case s.Addr == unixPrefix:
			return fmt.Errorf("invalid value %q for flag -addr: missing path", s.Addr)
		case s.Memory > 0 && s.Memory < leastMemory:
			return fmt.Errorf("-memory must be at least 1MiB: %v", (*cli.Size)(&s.Memory))
		case s.Config.Schedulers < 0:
			return fmt.Errorf("-reactors must not be negative: %d", s.Config.Schedulers)
		case s.Config.Schedulers > maxReactors:
			return fmt.Errorf("-reactors must be at most %d: %d", maxReactors, s.Config.Schedulers)
		}
		if idle == "" && s.Config.Idle != nil {
			return nil
		}
		var ok bool
		if s.Config.Idle, ok = strategies[idle]; !ok {
			return fmt.Errorf("-idle must be interrupt, poll, hybrid or busy, not %q", idle)
		}
		return nil
	}
}

// drain is the value of a flag: the policy of a graceful shutdown, as a duration.
type drain shutdown.Policy

func (d *drain) String() string {
	if d.Kind != shutdown.Bounded {
		return shutdown.Policy{Kind: d.Kind}.String()
	}
	return d.Time.String()
}

func (d *drain) Set(text string) error {
	var v cli.Duration
	if err := v.Set(text); err != nil {
		return err
	}
	d.Kind, d.Time, d.Drop = shutdown.Bounded, time.Duration(v), true
	if v == 0 {
		d.Kind = shutdown.Halt
	}
	return nil
}

// The durations of the strategies of -idle.
const (
	// pollPause is the pause of "poll": an event waits half of it on average, and an idle scheduler takes a few percent of
	// a CPU.
	pollPause = time.Millisecond
	// hybridSpin is the spin of "hybrid": a few times what it costs to go to sleep and wake up, so that at worst a small
	// multiple of that is wasted.
	hybridSpin = 50 * time.Microsecond
)

// strategies are the values of -idle.
var strategies = map[string]act.Strategy{
	"interrupt": nil, "poll": demon.Pause(pollPause), "hybrid": demon.Hybrid(hybridSpin), "busy": demon.Busy(),
}
