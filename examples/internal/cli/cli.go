// Package cli is what the example servers have in common: their flags, and a run from the first
// connection to an orderly end.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// maxReactors is far more than there are CPUs, and far less threads than the runtime allows (10,000).
const maxReactors = 1024

// Flags are what every example server can be told.
type Flags struct {
	Addr     string
	Reactors int
	Idle     string
	MaxConns int
	Drain    time.Duration
}

// Register adds the flags to fs.
func (f *Flags) Register(fs *flag.FlagSet, addr string) {
	fs.StringVar(&f.Addr, "addr", addr, "the address to listen on: `host:port`, or unix: and a path")
	fs.IntVar(&f.Reactors, "reactors", 0, "the `number` of schedulers, each with a thread of its own; 0: one for each CPU, at most GOMAXPROCS")
	fs.StringVar(&f.Idle, "idle", "interrupt", "the `strategy` of an idle scheduler: interrupt, poll, hybrid or busy")
	fs.IntVar(&f.MaxConns, "max-conns", 0, "the `number` of connections at a time; 0: no limit")
	Duration(fs, &f.Drain, "drain", shutdown.Grace, "the `duration` for which connections may go on after a signal; what is left then is cut")
}

// check says what the flags cannot mean.
func (f *Flags) check() error {
	switch {
	case f.Addr == "unix:":
		return fmt.Errorf("invalid value %q for flag -addr: missing path", f.Addr)
	case f.Reactors < 0:
		return fmt.Errorf("-reactors must not be negative: %d", f.Reactors)
	case f.Reactors > maxReactors:
		return fmt.Errorf("-reactors must be at most %d: %d", maxReactors, f.Reactors)
	case f.MaxConns < 0:
		return fmt.Errorf("-max-conns must not be negative: %d", f.MaxConns)
	case f.Drain < 0:
		return fmt.Errorf("-drain must not be negative: %v", f.Drain)
	}
	if _, err := demon.ParseStrategy(f.Idle); err != nil {
		return fmt.Errorf("-idle must be %w", err)
	}
	return NoArguments()
}

// Terms are those of the end that a signal asks for.
func (f *Flags) Terms() shutdown.Policy {
	if f.Drain == 0 {
		return shutdown.Policy{Kind: shutdown.Halting, Drop: true}
	}
	return shutdown.Policy{Time: f.Drain, Drop: true}
}

// Service is a service on a socket.
type Service interface {
	Setup(*act.Scheduler) error
	Addr() net.Addr
}

// Listen is the service at the flags' address.
func (f *Flags) Listen(handler func(*listener.Conn) act.Action) Service {
	if path, ok := strings.CutPrefix(f.Addr, "unix:"); ok {
		return &service.Unix{Path: path, Handler: handler, MaxConns: f.MaxConns}
	}
	return &service.TCP{Address: f.Addr, Handler: handler, MaxConns: f.MaxConns}
}

// Main is the main function of an example server: it parses the command line, serves until a signal, and
// exits: 0 after an orderly end, 1 when it cannot serve, 2 when it does not understand the flags; on a second
// signal as monitor.Signals says. A server adds flags of its own with package flag.
func Main(name, addr string, listen func(f *Flags) Service) {
	var f Flags
	f.Register(flag.CommandLine, addr)
	Parse(name, f.check)
	if err := f.Serve(listen(&f)); err != nil {
		exit(name, err, 1)
	}
}

// Parse parses the command line as package flag was told. What is wrong with it, or what check finds wrong with
// it then, ends the program with one sentence and status 2.
func Parse(name string, check func() error) {
	fs := flag.CommandLine
	fs.Init(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // one sentence is enough
	err := fs.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(os.Stderr)
		fs.Usage()
		os.Exit(0)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		exit(name, err, 2)
	}
}

// NoArguments refuses what comes behind the flags.
func NoArguments() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	return nil
}

// Tool is the main function of an example that is no server, after Parse: one scheduler works until nothing is
// left to do. A task that fails is logged and disturbs no other; the status is 1 then. A signal ends the tool at
// once; what was left is an error.
func Tool(name string, setup ...func(*act.Scheduler) error) {
	failed := false
	watch := &act.Trace{Ended: func(_ *act.Task, err error) {
		if err != nil && !errors.Is(err, act.ErrDropped) { // what is dropped and matters is Run's error
			failed = true
		}
	}}
	now := shutdown.Policy{Kind: shutdown.Halting, Drop: true}
	setup = append(setup, monitor.Signals(now))
	if err := act.Run(context.Background(), act.Config{Schedulers: 1, Trace: watch}, setup...); err != nil {
		exit(name, err, 1)
	}
	if failed {
		os.Exit(1)
	}
}

func exit(name string, err error, code int) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(code)
}

// Serve runs v until a signal ends it. What was cut then is logged and no error.
func (f *Flags) Serve(v Service) error {
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads any more ends no server
	log := logger()
	strategy, err := demon.ParseStrategy(f.Idle)
	if err != nil {
		return err
	}
	cfg := act.Config{Schedulers: f.Reactors, Idle: strategy, Logger: log}
	err = act.Run(context.Background(), cfg, monitor.Signals(f.Terms()), v.Setup, func(s *act.Scheduler) error {
		if s.Index() == len(s.Group().Schedulers())-1 {
			log.Info("listening on " + address(v.Addr()))
		}
		return nil
	})
	var cut *shutdown.Cut
	if err != nil && !errors.As(err, &cut) {
		return err
	}
	switch {
	case cut == nil || cut.Tasks+cut.Lingering == 0: // services that were told to halt are no loss
		log.Info("ended in order")
	case f.Drain == 0:
		log.Warn("cut without a drain", zap.Error(cut)) // which counts
	default:
		log.Warn(fmt.Sprintf("cut at the drain limit of %v", f.Drain), zap.Error(cut))
	}
	return nil
}

// address is a as -addr takes it.
func address(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}

func logger() *zap.Logger {
	encoding := zap.NewDevelopmentEncoderConfig()
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(os.Stderr), zapcore.InfoLevel)
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, 10, 1000))
}
