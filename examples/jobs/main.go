// Command jobs is a queue of background work, with a page that shows it.
//
//	go run . -load 1000
//	chromium http://127.0.0.1:8090/
//
// The tasks are in a file of SQLite, jobs.db, or in a database of PostgreSQL. Several copies of the program on one database
// share the work, and show the same page:
//
//	go run . -db postgres://user@host/database -addr 127.0.0.1:8090 &
//	go run . -db postgres://user@host/database -addr 127.0.0.1:8091
//
// What the page does, programs can do as well:
//
//	at=http://127.0.0.1:8090; token=$(curl -s $at/api/token)
//	curl -X POST -H "X-Jobs-Token: $token" "$at/api/tasks?kind=mail&n=10"
//	curl "$at/api/tasks?state=failed"
//	curl -X POST -H "X-Jobs-Token: $token" $at/api/tasks/1/cancel
//
// Each kind of task has limits: how many are worked on at a time, how often a stage is tried, after which pause, and for how
// long (work.go). Each full hour a task counts the others (-report 1h): its data are the numbers. Tasks that have finished are
// deleted after a week, cancelled ones after a day, and failed ones never.
//
// Whoever reaches the address may see and change all tasks: the token protects against other sites that a browser shows, not
// against people. Ctrl-C shuts the program down gracefully: the tasks that it works on go back, and keep their progress.
// Tasks of a killed process are taken up by another one when their leases have ended, after 5 s.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	var x Jobs
	flag.StringVar(&x.DB, "db", "jobs.db", "the `database`: a file, or the URL of one of PostgreSQL, postgres://...")
	flag.IntVar(&x.Load, "load", 0, "the `number` of tasks to add at each start, but not in an upgrade: pictures, invoices and mails")
	flag.IntVar(&x.Workers, "workers", 16, "the `number` of tasks to work on at a time")
	cli.DurationVar(&x.Pace, "pace", 200*time.Millisecond, "the `duration` of a step of the work")
	cli.DurationVar(&x.Report, "report", time.Hour, "the `duration` between two counts of the tasks, 0 for none")
	flag.Func("queues", "the `names` of the queues to work on, pictures,papers, in place of all", list(&x.Queues))
	flag.Func("host", "further `names` by which browsers reach the page, such as jobs.example.org", list(&x.Hosts))
	server := program.Server{Addr: "127.0.0.1:8090", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &inspect.Inspector{},
		&secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1", "http/1.0"}}},
	}}
	server.Parse()
	switch {
	case x.Load < 0:
		cli.Exit("jobs", fmt.Errorf("-load must not be negative: %d", x.Load), 2)
	case x.Workers < 1:
		cli.Exit("jobs", fmt.Errorf("-workers must be above 0: %d", x.Workers), 2)
	case x.Report != 0 && x.Report < time.Second:
		cli.Exit("jobs", fmt.Errorf("-report must be 0, or 1s or more: %v", x.Report), 2)
	case x.Load > maxLoad:
		cli.Exit("jobs", fmt.Errorf("-load must be at most %d: %d", maxLoad, x.Load), 2)
	case x.DB == "":
		cli.Exit("jobs", errors.New("-db needs a file"), 2)
	}
	x.Logger = logger()
	web := &httpd.Server{Handler: x.Site()}
	server.Run(server.Listen(server.Addr, web.Serve), &x) // in this order: a program that cannot listen does not open the database
}

// maxLoad bounds the tasks that are added before the program works: that has to be done in a minute.
const maxLoad = 100_000

func list(to *[]string) func(string) error {
	return func(text string) error {
		*to = append(*to, strings.Split(text, ",")...)
		return nil
	}
}

// logger logs errors only, most of them of a database that does not answer: of tasks that fail the page tells.
func logger() *zap.Logger {
	encoding := zap.NewDevelopmentEncoderConfig()
	encoding.StacktraceKey = ""
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(os.Stderr), zapcore.ErrorLevel))
}
