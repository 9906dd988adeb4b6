//go:build unix

package upgrade_test

import (
	"context"
	"log"
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
		Within: 5 * time.Minute,
		Terms:  shutdown.Policy{Time: 10 * time.Minute, Spread: 2 * time.Minute, Drop: true},
	}
	web := &httpd.Server{Handler: hello}
	server.Run(server.Listen(server.Addr, web.Serve))
}

// Without package program: Inherit comes before all set-up functions, and Setup is the last one.
func ExampleUpgrade_Inherit() {
	web := &httpd.Server{Handler: hello}
	tcp := &service.TCP{Name: "web", Address: "127.0.0.1:8080", Handler: web.Serve}
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

// An upgrade can be started by the program itself, as when it has downloaded a newer binary. The call waits until that one serves.
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
