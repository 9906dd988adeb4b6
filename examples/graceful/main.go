// Command graceful is a server with short, long and streaming requests, WebSocket, and a demon in the background, which can be
// shut down gracefully, reloaded and replaced. docs/ending.md shows what its flags are for, and docs/systemd.md how it runs under
// systemd.
//
//	go build ./examples/graceful && ./graceful -text README.md
//	curl http://127.0.0.1:8080/slow?for=5s
//
// End it while requests are under way; it says each second what it waits for:
//
//	./graceful -drain 10s
//	curl http://127.0.0.1:8080/slow?for=1m & kill $(pidof graceful)
//
// Replace it by a newer binary, while requests are under way:
//
//	go build ./examples/graceful && kill -USR2 $(pidof graceful)
//
// Have it read the text again:
//
//	kill -HUP $(pidof graceful)
//
// Withdraw a shutdown while it is only announced:
//
//	./graceful -announce 20s -drain 1m -withdraw-on USR1
//	kill $(pidof graceful)
//	kill -USR1 $(pidof graceful)
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/upgrade"
)

func main() {
	pages := &site{}
	var reload func() error
	flag.Func("text", "a `file` whose text the page / shows; SIGHUP reads it again", func(path string) error {
		reload = func() error { return pages.read(path) }
		return reload()
	})
	atEnd := service.FinishRequest
	flag.Func("at-end", "what becomes of connections at the end, a `word`: request (finish it, the default), finish or discard",
		func(word string) error {
			var known bool
			if atEnd, known = endings[word]; !known {
				return errors.New("it must be request, finish or discard")
			}
			return nil
		})
	readiness := flag.String("health", "", "an `address` for /healthz and /readyz that is served until all else has ended")
	within := flag.Duration("upgrade-within", time.Minute, "the `duration` that a newer binary may take until it is ready to take over")
	var upgradeOn, withdrawOn os.Signal
	signalVar(&upgradeOn, "upgrade-on", "the `signal` that has a newer binary started: USR1, USR2 (the default) or WINCH")
	signalVar(&withdrawOn, "withdraw-on", "a `signal` that takes an end back while it is only announced: USR1, USR2 or WINCH")
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}},
	}}
	server.Parse()
	server.Reload = reload
	server.Upgrade = &upgrade.Upgrade{Signal: upgradeOn, Timeout: *within}
	web := &httpd.Server{Handler: pages.routes().Serve}
	public := server.Listen(server.Addr, web.Serve)
	public.Name, public.AtEnd = "web", atEnd // by its name the service finds its socket under systemd
	services := []program.Service{background{}, public}
	if *readiness != "" {
		last := &httpd.Server{Handler: health().Serve}
		services = append(services, &service.Listener{Name: "health", Address: *readiness, Handler: last.Serve, AtEnd: service.LastOfAll})
	}
	if withdrawOn != nil {
		services = append(services, &withdrawal{on: withdrawOn})
	}
	server.Run(services...)
}

var endings = map[string]service.Ending{
	"request": service.FinishRequest, "finish": service.Finish, "discard": service.Discard,
}

// signalVar defines a flag whose value is a signal. Without the flag it is nil.
func signalVar(sig *os.Signal, name, usage string) {
	flag.Func(name, usage, func(text string) error {
		if *sig = signals[text]; *sig == nil {
			return errors.New("it must be USR1, USR2 or WINCH")
		}
		return nil
	})
}

// withdrawal is a service without a socket: on a signal it withdraws the shutdown, if that is only announced.
type withdrawal struct {
	on    os.Signal
	group *act.Group
}

func (x *withdrawal) Setup(s *act.Scheduler) error {
	x.group = s.Group()
	return monitor.OnSignal(x, x.on)(s)
}

// Signal is called on a goroutine of its own.
func (x *withdrawal) Signal(os.Signal) {
	log := x.group.Schedulers()[0].Logger()
	if o := x.group.Order(); o != nil && x.group.Withdraw(o) {
		log.Info("the end is withdrawn")
	} else {
		log.Warn("there is no end that is only announced")
	}
}

// background is a service without a socket: its demon does something each minute, until a shutdown request ends it.
type background struct{}

func (background) Setup(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	ticks := 0
	s.Install(demon.Every(time.Minute, func(*act.Task) act.Directive {
		ticks++
		s.Logger().Info("the demon in the background is at work", zap.Int("ticks", ticks))
		return act.Wait
	}))
	return nil
}
