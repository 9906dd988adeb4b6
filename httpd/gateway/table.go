package gateway

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
)

type Gateway struct {
	Name      string
	Trust     bool
	Forwarded bool
	Only      *client.Origin
	b         backend
	g         group
	rt        route
}

type route struct{ group *group }
type group struct{ back *backend }
type backend struct {
	origin *client.Origin
	proxy  int
	n      atomic.Int32
}

func (g *Gateway) find(r *httpd.Request) *route {
	if g.rt.group == nil {
		g.b.origin = g.Only
		g.g.back = &g.b
		g.rt.group = &g.g
	}
	return &g.rt
}
func (g *group) pick(r *httpd.Request, tried []*backend) *backend { return g.back }
func (g *group) retry(now time.Duration) bool                     { return true }
func (g *group) failure(status int) bool                          { return false }
func (b *backend) begin()                                         { b.n.Add(1) }
func (b *backend) end(now, took time.Duration, good bool)         { b.n.Add(-1) }
