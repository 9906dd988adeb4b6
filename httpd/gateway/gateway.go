package gateway

import (
	"cmp"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
)

// Serve passes a request to a back end: it is a Handler, such as for httpd.Server.Handler.
func (g *Gateway) Serve(w *httpd.Response, r *httpd.Request) act.Action {
	return &forward{g: g, w: w, r: r, route: g.find(r)}
}

func (g *Gateway) name() string { return cmp.Or(g.Name, "daimon") }
