//go:build unix

package upgrade_test

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/upgrade"
)

func hello(w *httpd.Response, _ *httpd.Request) act.Action {
	_, _ = w.WriteString("Hello, World!\n")
	return nil
}

// A program of package program can always be upgraded. This one gives a new binary more time, and its clients a longer window.
func ExampleUpgrade() {
	server := program.Server{Addr: "127.0.0.1:8080"}
	server.Parse()
	server.Upgrade = &upgrade.Upgrade{
		Timeout: 5 * time.Minute,
		Terms:   shutdown.Policy{Time: 10 * time.Minute, Spread: 2 * time.Minute, Drop: true},
	}
	web := &httpd.Server{Handler: hello}
	server.Run(server.Listen(server.Addr, web.Serve))
}

// Without package program: Inherit comes before all set-up functions, and Setup is the last one.
func ExampleUpgrade_Inherit() {
	web := &httpd.Server{Handler: hello}
	tcp := &service.Listener{Name: "web", Address: "127.0.0.1:8080", Handler: web.Serve}
	u := &upgrade.Upgrade{Services: []any{tcp}}
	if err := u.Inherit(); err != nil {
		log.Fatal(err)
	}
	err := act.Run(context.Background(), act.Config{}, monitor.Signals(shutdown.Policy{}), tcp.Setup, u.Setup)
	u.Close(err)
	if err != nil {
		log.Print(err)
	}
}

// An upgrade can be started by the program itself, as when it has downloaded a newer binary. The call waits until that
// one serves.
func ExampleUpgrade_Start() {
	u := &upgrade.Upgrade{Program: "/usr/local/lib/web/web-2"}
	server := program.Server{Addr: "127.0.0.1:8080", Upgrade: u}
	server.Parse()
	web := &httpd.Server{Handler: hello}
	go func() {
		time.Sleep(time.Hour)
		if err := u.Start(); err != nil {
			log.Print(err) // and this program goes on
		}
	}()
	server.Run(server.Listen(server.Addr, web.Serve))
}

// counter counts visits in memory. From SaveState on it counts no more, since the new process goes on from there.
type counter struct {
	visits atomic.Int64
	stands atomic.Bool
}

func (c *counter) Setup(*act.Scheduler) error { return nil }
func (c *counter) StateName() string          { return "visits" }

func (c *counter) SaveState(context.Context) ([]byte, error) {
	c.stands.Store(true)
	return strconv.AppendInt(nil, c.visits.Load(), 10), nil
}

func (c *counter) LoadState(state []byte) error {
	n, err := strconv.ParseInt(string(state), 10, 64)
	c.visits.Store(n)
	return err
}

// Settle has this program go on, unless the new one does.
func (c *counter) Settle(err error) { c.stands.Store(err == nil) }

func (c *counter) visit(w *httpd.Response, _ *httpd.Request) act.Action {
	if c.stands.Load() {
		w.SetStatus(503)
		return nil
	}
	fmt.Fprintf(w, "visit %d\n", c.visits.Add(1))
	return nil
}

// A state in memory goes on in the new process.
func ExampleSettler() {
	server, count := program.Server{Addr: "127.0.0.1:8080"}, &counter{}
	server.Parse()
	web := &httpd.Server{Handler: count.visit}
	server.Run(count, server.Listen(server.Addr, web.Serve))
}
