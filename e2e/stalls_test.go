package e2e

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
)

// asStalls is an environment variable that makes a server of this test binary: of handlers that stall their scheduler.
const asStalls = "DAIMON_E2E_STALLS"

// stalled is for how long.
const stalled = 200 * time.Millisecond

// serveStalls is the main function of that server.
func serveStalls() {
	server := program.Server{Addr: "127.0.0.1:0"}
	inspector := inspect.Flag()
	server.Parse()
	site := &httpd.Mux{}
	site.Handle("GET /{$}", func(w *httpd.Response, _ *httpd.Request) act.Action {
		_, _ = w.WriteString("hello")
		return nil
	})
	for name, stall := range stalls {
		site.Handle("GET /"+name, func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString(stall())
			return nil
		})
	}
	web := &httpd.Server{Handler: site.Serve}
	server.Run(inspector, server.Listen(server.Addr, web.Serve))
}

// stalls are the mistakes of handlers. Each returns the line in which it stalls.
var stalls = map[string]func() string{
	"computing": func() string {
		until, at := time.Now().Add(stalled), below()
		for time.Now().Before(until) {
		}
		return at
	},
	"lock": func() string {
		var mu sync.Mutex
		mu.Lock()
		time.AfterFunc(stalled, mu.Unlock)
		at := below()
		mu.Lock()
		return at
	},
	"channel": func() string {
		over := time.After(stalled)
		at := below()
		<-over
		return at
	},
	"sleep": func() string {
		at := below()
		time.Sleep(stalled)
		return at
	},
	"collector": func() string {
		until, at := time.Now().Add(stalled), ""
		for time.Now().Before(until) {
			at = below()
			runtime.GC()
		}
		return at
	},
}

// below returns the line below that of the call.
func below() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("github.com/daimon-go/daimon/e2e/%s:%d", filepath.Base(file), line+1)
}
