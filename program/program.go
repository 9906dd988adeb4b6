package program

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/internal/logs"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/upgrade"
)

// Server is a server program. Its fields are the defaults of its flags; after [Server.Parse] they have the
// values that the command line gives. The order of calls is Parse, Listen, Run.
type Server struct {
	// Addr is the address to listen on: "host:port", or "unix:" and a path. The flag is -addr. If it is empty
	// there is no such flag, for programs that find their addresses elsewhere.
	Addr string
	// MaxConns bounds the open connections of each address. 0 means as many as descriptors and memory allow (see [service.Listener]),
	// which is logged, and less than 0 means no bound. Each address gets the whole default, so a program with several addresses
	// sets MaxConns. The flag is -max-conns.
	MaxConns int
	// Memory bounds the bytes that are queued and buffered for the connections of all schedulers together. 0 means half of the
	// memory that the process may have, and less than 0 means no bound. [listener.Budget] says what happens at the bound. The
	// flag is -memory.
	Memory int
	// Engine is how sockets make their system calls: see [monitor.Use]. The flag is -engine.
	Engine monitor.Engine
	// Options are parts of the program that have flags of their own, such as a secure.TLS, an inspect.Inspector or an
	// accesslog.Log: see [Option].
	Options []Option
	// Config configures the schedulers. The flags -reactors and -idle set its Schedulers and Idle, -cpus its Threads and CPUs.
	// The flags of a shutdown, such as -drain, set its Shutdown, which also applies to signals. If its Logger is nil, log lines
	// from level Info on go to standard error. If its Draining is nil, a shutdown logs each second what it waits for.
	Config act.Config
	// Reload reads the program's own files again; it may be nil. It is called on SIGHUP, after the services have read their
	// files again. It has a goroutine of its own, so it may block, and is not called twice at a time. An error is logged and
	// the program goes on, so a Reload that fails must leave the old state in force.
	Reload func() error
	// Upgrade sets how SIGUSR2 replaces the program by a newer binary. nil means the defaults of the zero Upgrade; it does not
	// switch the upgrade off. Run adds to its Services. If it has no Terms, they are Config.Shutdown.
	Upgrade *upgrade.Upgrade

	parsed bool
}

// Option is a part of a server program with flags of its own, such as an inspect.Inspector. If it has a method Filters()
// []listener.Filter, those filters prepare the connections of each address of [Server.Listen]: in the order of the Options,
// so a proxyproto.Config comes before an admission.Limiter, and that before a secure.TLS. Other sockets have none of them: a
// [service.Listener] of your own, such as a port for health checks, stays unencrypted even with a secure.TLS. An Option that is a
// [Service] is set up by Run before the others.
type Option interface {
	// Flags defines the flags. Their defaults are the fields of the Option. The function that it returns checks the values after
	// parsing; it may be nil. An error is printed and ends the program with status 2, so make it one sentence that names the
	// flag.
	Flags(*flag.FlagSet) (check func() error)
}

// Service is a part of a server program, such as a [service.Listener] or the System of package process. If it has a method
// Configure(*act.Config), that is called before the schedulers are made; if it is an io.Closer, it is closed when they have
// ended. The Inspector of package inspect has both.
type Service interface {
	// Setup is a set-up function as [act.Run] takes it: it is called once for each scheduler, before any of them runs.
	Setup(*act.Scheduler) error
}

// Serve is the whole main function of a server on one address: it parses the command line and serves until a
// signal. addr is the default of the flag -addr; handler makes the action of each connection, see [service.Listener].
func Serve(addr string, handler func(*listener.Conn) act.Action, options ...Option) {
	s := Server{Addr: addr, Options: options}
	s.Parse()
	s.Run(s.Listen(s.Addr, handler))
}

// Listen returns a service for an address, "host:port", or "unix:" and a path. Its other fields may be set before [Server.Run],
// from which on it listens. The filters prepare each connection before the handler, and the filters of the Options come first:
// so Listen panics before [Server.Parse] if an Option may have filters. For an address without them, pass a [service.Listener]
// of your own to Run.
func (s *Server) Listen(addr string, handler func(*listener.Conn) act.Action, filters ...listener.Filter) *service.Listener {
	return &service.Listener{Address: addr, Handler: handler, Filters: append(s.filters(), filters...), MaxConns: s.MaxConns}
}

func (s *Server) filters() (all []listener.Filter) {
	for _, o := range s.Options {
		if x, ok := o.(interface{ Filters() []listener.Filter }); ok {
			if !s.parsed {
				panic("program: Listen comes after Parse, whose flags decide on the filters")
			}
			all = append(all, x.Filters()...)
		}
	}
	return all
}

const unixPrefix = "unix:"

// Run sets up the Options and then the services, each in the given order, and logs the address of each that listens. It returns
// after a graceful shutdown, by a signal or because all services have ended, and logs how many connections were cut off. If a
// service cannot be set up, or the schedulers fail, Run ends the program with status 1.
func (s *Server) Run(services ...Service) {
	var all []Service
	for _, o := range s.Options {
		if v, ok := o.(Service); ok {
			all = append(all, v)
		}
	}
	if err := s.run(append(all, services...)); err != nil {
		cli.Exit(name(), err, 1)
	}
}

func (s *Server) run(services []Service) error {
	// A log that is no longer read must not end the server. The signal is caught, and not ignored, which programs that a handler
	// starts would inherit: execve(2).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	cfg := s.Config
	if cfg.Logger == nil {
		cfg.Logger = logger()
	}
	cfg.Logger = logs.Valid(cfg.Logger)
	for _, v := range services {
		if c, ok := v.(interface{ Configure(*act.Config) }); ok {
			c.Configure(&cfg)
		}
	}
	newer := cmp.Or(s.Upgrade, &upgrade.Upgrade{})
	for _, v := range services {
		newer.Services = append(newer.Services, v)
	}
	newer.Terms = cmp.Or(newer.Terms, cfg.Shutdown)
	if err := newer.Inherit(); err != nil {
		return err
	}
	defer closeAll(cfg.Logger, services)
	supervisor := newNotifier(cfg.Logger)
	report := cfg.Draining
	if report == nil {
		report = func(d shutdown.Drain) { cfg.Logger.Info(d.String()) }
	}
	cfg.Draining = func(d shutdown.Drain) {
		report(d)
		supervisor.drain(d)
	}
	setup := []func(*act.Scheduler) error{monitor.Use(s.Engine), listener.Budget(s.Memory), monitor.Signals(cfg.Shutdown)}
	if supervisor != nil {
		setup = append(setup, onReload(supervisor.reloading))
	}
	for _, v := range services {
		setup = append(setup, v.Setup)
	}
	if s.Reload != nil {
		setup = append(setup, onReload(func() {
			if err := s.Reload(); err != nil {
				cfg.Logger.Error("reloading failed: all stays as it was", zap.Error(err))
			} else {
				cfg.Logger.Info("reloaded")
			}
		}))
	}
	setup = append(setup, newer.Setup, func(on *act.Scheduler) error {
		if on.Index() == len(on.Group().Schedulers())-1 { // all services are set up on all schedulers
			logAddresses(cfg.Logger, services)
		}
		return nil
	})
	if supervisor != nil {
		defer supervisor.close()
		setup = append(setup, supervisor.setup, onReload(supervisor.reloaded))
	}
	err := act.Run(context.Background(), cfg, setup...)
	newer.Close(err)
	var cut *shutdown.Cut
	if err != nil && !errors.As(err, &cut) {
		return err
	}
	logEnd(cfg.Logger, cut)
	return nil
}

// reload is called for SIGHUP, on a goroutine of its own.
type reload struct{ do func() }

func (r *reload) Signal(os.Signal) { r.do() }

func onReload(do func()) func(*act.Scheduler) error {
	return monitor.OnSignal(&reload{do}, syscall.SIGHUP)
}

func closeAll(log *zap.Logger, services []Service) {
	for _, v := range slices.Backward(services) {
		if c, ok := v.(io.Closer); ok {
			if err := c.Close(); err != nil {
				log.Warn("closing failed", zap.Error(err))
			}
		}
	}
}

func logAddresses(log *zap.Logger, services []Service) {
	for _, v := range services {
		if socket, ok := v.(interface{ Addr() net.Addr }); ok {
			if addr := socket.Addr(); addr != nil {
				text := addr.String()
				switch addr.Network() {
				case "unix", "unixgram":
					text = unixPrefix + text
				case "udp":
					text = "udp " + text
				}
				log.Info("listening on " + text)
			}
		}
	}
}

// logEnd logs how the program has ended. Services and processes that a shutdown halts are not a loss.
func logEnd(log *zap.Logger, cut *shutdown.Cut) {
	if cut == nil || cut.Tasks+cut.Lingering == 0 {
		log.Info("ended in order")
		return
	}
	how := "cut without a drain"
	if cut.Order != nil {
		if terms := cut.Order.Policy().Resolved(); terms.Kind == shutdown.Bounded && terms.Time > 0 {
			if how = fmt.Sprintf("cut at the drain limit of %v", terms.Time); terms.Inactivity > 0 {
				how += fmt.Sprintf(", or after %v without activity", terms.Inactivity)
			}
		}
	}
	log.Warn(how, zap.Error(cut))
	for _, l := range cut.Left {
		log.Warn("cut: " + l.String())
	}
}

// logger writes lines for people to standard error; of equal lines the first ten of a second, and then every
// thousandth.
func logger() *zap.Logger {
	encoding := zap.NewDevelopmentEncoderConfig()
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(os.Stderr), zapcore.InfoLevel)
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, 10, 1000))
}

func name() string { return filepath.Base(os.Args[0]) }
