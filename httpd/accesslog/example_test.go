package accesslog_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/accesslog"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/service"
)

// The Log is set up before the service whose requests it logs.
func ExampleLog() {
	dir, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(dir) }()

	log := &accesslog.Log{Path: filepath.Join(dir, "access.log"), Format: accesslog.Common}
	web := &httpd.Server{Handler: httpd.Healthy, OnResponse: log.OnResponse()}
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: web.Serve}

	ctx, end := context.WithCancel(context.Background())
	client := func(*act.Scheduler) error {
		go func() {
			defer end()
			if answer, err := http.Get("http://" + tcp.Addr().String() + "/healthz"); err == nil {
				_ = answer.Body.Close()
				http.DefaultClient.CloseIdleConnections()
			}
		}()
		return nil
	}
	_ = act.Run(ctx, act.Config{Schedulers: 1}, log.Setup, tcp.Setup, client)

	line, _ := os.ReadFile(log.Path)
	_, request, _ := strings.Cut(string(line), "] ") // before it: the client's address and the time
	fmt.Print(request)
	// Output: "GET /healthz HTTP/1.1" 200 3
}

// As an Option of package program the Log is a service, and has the flags -access-log and -access-log-format. Without
// -access-log there is no log.
func ExampleLog_Flags() {
	log := &accesslog.Log{}
	server := program.Server{Addr: "127.0.0.1:8080", Options: []program.Option{log}}
	server.Parse()
	web := &httpd.Server{Handler: httpd.Healthy, OnResponse: log.OnResponse()}
	server.Run(server.Listen(server.Addr, web.Serve))
}
