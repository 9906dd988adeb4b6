package e2e

import (
	"fmt"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
)

// asHolder is an environment variable that makes a server of this test binary: its answers and bodies are large.
const asHolder = "DAIMON_E2E_HOLDER"

// serveHolder is the main function of that server.
func serveHolder() {
	server := program.Server{Addr: "127.0.0.1:0", Limits: listener.Limits{SendBuffer: 32 << 10}, MaxConns: -1}
	inspector := inspect.Flag()
	server.Parse()
	text := strings.Repeat("x", 512<<10)
	site := &httpd.Mux{}
	site.Handle("GET /", func(w *httpd.Response, _ *httpd.Request) act.Action {
		_, _ = w.WriteString("hello")
		return nil
	})
	site.Handle("GET /large", func(w *httpd.Response, _ *httpd.Request) act.Action {
		_, _ = w.WriteString(text)
		return nil
	})
	site.Handle("POST /body", httpd.WithBody(0, func(w *httpd.Response, _ *httpd.Request, body []byte) act.Action {
		fmt.Fprint(w, len(body))
		return nil
	}))
	server.Run(inspector, server.Listen(server.Addr, (&httpd.Server{Handler: site.Serve}).Serve))
}
