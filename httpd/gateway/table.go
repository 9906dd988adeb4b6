package gateway

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Table has routes, groups and back ends. It is constant; a [Gateway] swaps one for another.
type Table struct {
	config   Config
	routes   []*route
	backends []*backend // of all groups; each has its part of the array
	groups   map[string]*group
	byHost   map[string][]*route // in lower case: "example.com", ".example.com" for *.example.com, ""; the longest path first
	wild     bool                // there is a host of the form *.example.com
	// uses counts the requests that are under way with the Table, and the Gateway while it is in force. At 0 it is over.
	uses atomic.Int64
}

// route is a Route that is used.
type route struct {
	table *Table
	path  string // without a slash at its end
	name  string
	group *group
	*routeCounts
}

// NewTable makes a Table. If c has mistakes, the error joins a *Mistake for each of them (errors.Join). No connection is made.
// The Table is for one Gateway.
func NewTable(c Config) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Name = cmp.Or(c.Name, "daimon")
	t := &Table{config: c, groups: map[string]*group{}, byHost: map[string][]*route{}}
	t.uses.Store(1)
	for i := range c.Groups {
		g := newGroup(&c.Groups[i])
		t.groups[g.name], t.backends = g, append(t.backends, g.backends...)
	}
	at := 0
	for i := range c.Groups { // a group has its part of them
		g := t.groups[c.Groups[i].Name]
		at, g.backends = at+len(g.backends), t.backends[at:at+len(g.backends)]
	}
	for _, x := range c.Routes {
		path := strings.TrimSuffix(x.Path, "/")
		r := &route{table: t, path: path, name: x.Host + path + "/", group: t.groups[x.Group], routeCounts: &routeCounts{}}
		host := strings.ToLower(strings.TrimPrefix(x.Host, "*"))
		t.wild = t.wild || strings.HasPrefix(host, ".")
		t.routes, t.byHost[host] = append(t.routes, r), append(t.byHost[host], r)
	}
	for _, all := range t.byHost {
		slices.SortFunc(all, func(a, b *route) int { return len(b.path) - len(a.path) })
	}
	return t, nil
}

// find returns the route of a request, or nil. The request uses the Table until release.
func (g *Gateway) find(r *httpd.Request) *route {
	t := g.use()
	found := t.route(r.Host(), r.Path())
	if found == nil {
		t.release()
		return nil
	}
	found.requests.Add(1)
	found.active.Add(1)
	return found
}

// use returns the Table that is in force.
func (g *Gateway) use() *Table {
	for {
		t := g.table.Load()
		if n := t.uses.Load(); n > 0 && t.uses.CompareAndSwap(n, n+1) {
			return t
		}
	}
}

// route returns the route for a host, with or without a port, and a path; nil if there is none.
func (t *Table) route(host, path []byte) *route {
	path, ok := canonical(path)
	if !ok {
		return nil
	}
	host = syntax.WithoutPort(host)
	for _, c := range host {
		if 'A' <= c && c <= 'Z' {
			host = bytes.ToLower(host)
			break
		}
	}
	if r := under(t.byHost[string(host)], path); r != nil || len(host) == 0 {
		return r
	}
	for i, c := range host {
		if c == '.' && t.wild && i > 0 {
			if r := under(t.byHost[string(host[i:])], path); r != nil {
				return r
			}
		}
	}
	return under(t.byHost[""], path)
}

// under returns the first route whose path is that of whole segments at the beginning of path.
func under(all []*route, path []byte) *route {
	for _, r := range all {
		n := len(r.path)
		if n <= len(path) && string(path[:n]) == r.path && (n == len(path) || n == 0 || path[n] == '/') {
			return r
		}
	}
	return nil
}

// canonical returns a path without escapes, with one slash for several. It reports whether that is possible, and no segment is
// "." or "..". A path that needs no change is returned as it is.
func canonical(path []byte) ([]byte, bool) {
	if plain(path) {
		return path, true
	}
	path, ok := syntax.Unescape(nil, path)
	kept := path[:0]
	for i, c := range path {
		if c != '/' || i == 0 || path[i-1] != '/' {
			kept = append(kept, c)
		}
	}
	for segment := range bytes.SplitSeq(kept, []byte{'/'}) {
		ok = ok && string(segment) != "." && string(segment) != ".."
	}
	return kept, ok
}

// plain reports whether a path certainly needs no change.
func plain(path []byte) bool {
	before := byte(0)
	for _, c := range path {
		if c == '%' || before == '/' && (c == '/' || c == '.') {
			return false
		}
		before = c
	}
	return true
}

// identity is what back ends of two Tables have in common if they are the same.
type identity struct {
	group string
	Backend
	Health
}

// adopt takes over the back ends and the counts that old has as well, with their connections and what is known of their health.
func (t *Table) adopt(old *Table) {
	known, counts := map[identity]*backend{}, map[string]*routeCounts{}
	if old != nil {
		for _, b := range old.backends {
			known[b.identity] = b
		}
		for _, r := range old.routes {
			counts[r.name] = r.routeCounts
		}
		for name, g := range t.groups {
			if same := old.groups[name]; same != nil {
				g.turn = same.turn
			}
		}
	}
	for i, b := range t.backends {
		if same := known[b.identity]; same != nil {
			t.backends[i] = same
		}
		t.backends[i].tables.Add(1)
	}
	for _, r := range t.routes {
		if same := counts[r.name]; same != nil {
			r.routeCounts = same
		}
	}
}

// release ends a use. After the last one the back ends that no other Table has are closed.
func (t *Table) release() {
	if t.uses.Add(-1) > 0 {
		return
	}
	for _, b := range t.backends {
		if b.tables.Add(-1) == 0 {
			b.origin.Close()
			b.probe.Close()
		}
	}
}

// backend is a Backend that is used. Tables that follow each other share it.
type backend struct {
	identity
	origin  *client.Origin
	probe   *client.Origin // the same server, for checks
	hash    uint64
	tables  atomic.Int32 // that have it; 0: it is closed
	state   health
	checked bool         // by a checker; used by the first scheduler
	place   atomic.Int64 // in the order of turns
	backendCounts
}

func newBackend(group string, b Backend, h Health) *backend {
	x := &backend{identity: identity{group, b, h}, hash: hashOf([]byte(b.Address))}
	x.Weight = max(1, b.Weight)
	x.origin = &client.Origin{Address: b.Address, Host: b.Host, TLS: b.TLS, Protocol: b.Protocol, MaxConns: b.MaxConns,
		MaxIdle: b.MaxIdle, MaxWaiting: b.MaxWaiting, IdleTimeout: b.IdleTimeout, Timeouts: b.Timeouts}
	x.probe = &client.Origin{Address: b.Address, Host: b.Host, TLS: b.TLS, Protocol: b.Protocol, MaxIdle: -1,
		Timeouts: client.Timeouts{Total: cmp.Or(h.Timeout, 2*time.Second)}}
	return x
}
