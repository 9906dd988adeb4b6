package gateway

import (
	"cmp"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
)

// unused has the forwards of a scheduler that are in no use.
type unused struct{ free []*forward }

var pools = act.NewLocal(func(*act.Scheduler) *unused { return &unused{} })

// mostUnused bounds how many are kept for the next requests.
const mostUnused = 256

// Serve passes a request to a back end: it is a Handler, such as for httpd.Server.Handler.
func (g *Gateway) Serve(w *httpd.Response, r *httpd.Request) act.Action {
	pool := pools.Get(r.Scheduler())
	f := (*forward)(nil)
	if n := len(pool.free); n > 0 {
		f, pool.free = pool.free[n-1], pool.free[:n-1]
	} else {
		f = &forward{}
	}
	f.g, f.w, f.r, f.route = g, w, r, g.find(r)
	return f
}

func (g *Gateway) name() string { return cmp.Or(g.Name, "daimon") }
