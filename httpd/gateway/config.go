package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Config is what a Table is made of. NewTable checks it.
type Config struct {
	// Name is this gateway's in the field Via (RFC 9110 7.6.3); "" means "daimon".
	Name string
	// Trust keeps the fields that say where a request comes from, Forwarded and X-Forwarded-*, and adds to them. It is for a
	// gateway that only other proxies reach: without it they are removed, since clients can send what they like.
	Trust bool
	// Forwarded adds the field Forwarded (RFC 7239) in addition to X-Forwarded-*.
	Forwarded bool

	Groups []Group
	Routes []Route
}

// Route chooses the group for requests. If several match a request, the one with the most specific host counts, and of these the
// one with the longest path. A request that none matches is answered with 404.
type Route struct {
	// Host is "example.com", "*.example.com" for all names below it, or "" for any. The port of a request does not count.
	Host string
	// Path is what the path of a request begins with, in whole segments: "/api" matches /api and /api/items, but not /apis. ""
	// and "/" match every path. It is compared with the path without escapes, in which slashes that follow each other are one. A
	// path with a segment "." or ".." matches nothing, since servers do not agree on what it means.
	Path string
	// Group is the name of the group.
	Group string
}

// Group is a set of back ends that answer the same requests.
type Group struct {
	Name     string
	Backends []Backend
	Policy   Policy
	// Key is what requests have in common that Hash passes to one back end: "source", the client's address, "path",
	// "header:" and its name, or "cookie:" and its name. Requests without it take turns.
	Key string
	// Failures are the statuses of an answer after which another back end is tried, and which Health counts as failures; nil
	// means 502, 503 and 504.
	Failures []int
	// Retries bounds how many requests are passed to another back end after a failure, as a percentage of the requests of the
	// last 10 s, and 10 more. 0 means 20, and less than 0 means none. So a group that fails as a whole gets little more to do.
	Retries int
	// MaxOut is the largest percentage of back ends that are left out because of their Health; 0 means 50. If more are in a bad
	// state, all of them are used: it is then more likely that something else is wrong.
	MaxOut int
	Health Health
}

// Policy says how a group chooses the back end of a request.
type Policy string

// The policies. None depends on randomness.
const (
	RoundRobin    Policy = "round-robin"    // in turns, as their weights say; "" means this
	LeastRequests Policy = "least-requests" // the one with the fewest requests under way for its weight
	Hash          Policy = "hash"           // by Key: if a back end comes or goes, only its own requests change places
)

// Backend is a server. Its bounds hold for all schedulers. A server that is in two groups is two back ends.
type Backend struct {
	// Address is "host:port", or "unix:" and a path.
	Address string
	// Host replaces that of the requests.
	Host string
	// TLS configures TLS; nil means plain text. It must not be changed. Two Tables have the same back end only if it is the same
	// pointer.
	TLS      *tls.Config
	Protocol client.Protocol
	// Weight is its share, from 1 to 1000; 0 means 1.
	Weight int
	// Proxy is the version of the PROXY header that it gets at the beginning of each connection, 1 or 2; 0 means none. Each
	// request then has a connection of its own.
	Proxy int
	// MaxConns, MaxIdle, MaxWaiting, IdleTimeout and Timeouts are as in client.Origin.
	MaxConns, MaxIdle, MaxWaiting int
	IdleTimeout                   time.Duration
	Timeouts                      client.Timeouts
}

// Health says when a back end is left out: because of requests that have failed, and of checks if there is a Path.
type Health struct {
	// Failures is the number of failures in a row after which a back end is left out, for the time Out. 0 means 5, less than 0
	// never. A failure is a connection that cannot be made or ends before the answer does, a time-out, or a status of
	// Group.Failures.
	Failures int
	// Out is how long; 0 means 10 s. It doubles each time, up to 5 min, until the back end has worked for as long as it was out.
	Out time.Duration
	// Return is the time over which its weight grows from a tenth to its own when it is back. 0 means 10 s, less than 0 at once.
	Return time.Duration

	// Path is the target of checks, such as "/healthz"; "" means that there are none. Each is a GET on a connection of its own,
	// and a status from 200 to 399 is good.
	Path string
	// Interval is the time between two checks of a back end, and Timeout how long one may take; 0 means 5 s, and 2 s.
	Interval, Timeout time.Duration
	// Fall is the number of bad checks in a row after which a back end is left out, and Rise of good ones after which it is back.
	// 0 means 3, and 2.
	Fall, Rise int
}

// Mistake is an error in a Config.
type Mistake struct {
	// Path is where it is, such as "groups[1].backends[0].address": fields as keys in lower case, with "_" between words.
	Path string
	Err  error
}

// Error returns the place and what is wrong.
func (m *Mistake) Error() string { return m.Path + ": " + m.Err.Error() }

// mistakes collects them.
type mistakes struct{ all []error }

// at adds a Mistake if there is one.
func (m *mistakes) at(wrong bool, path, why string, values ...any) {
	if wrong {
		m.all = append(m.all, &Mistake{path, fmt.Errorf(why, values...)})
	}
}

// check returns all Mistakes of c together.
func (c *Config) check() error {
	m := &mistakes{}
	groups := map[string]bool{}
	for i := range c.Groups {
		g, at := &c.Groups[i], fmt.Sprintf("groups[%d]", i)
		m.at(g.Name == "" || groups[g.Name], at+".name", "a group needs a name of its own: %q", g.Name)
		groups[g.Name] = true
		m.group(g, at)
	}
	m.at(c.Name != "" && !syntax.Token.Only(syntax.Bytes(c.Name)), "name", "not a token, as the field Via has it: %q", c.Name)
	seen := map[Route]bool{}
	m.at(len(c.Routes) == 0, "routes", "there is no route")
	for i, r := range c.Routes {
		at := fmt.Sprintf("routes[%d]", i)
		m.at(!groups[r.Group], at+".group", "there is no group %q", r.Group)
		name := strings.TrimPrefix(r.Host, "*.")
		m.at(name == "" && r.Host != "" || strings.ContainsRune(name, '*') || !syntax.ValidHost(syntax.Bytes(name)) ||
			len(syntax.WithoutPort(syntax.Bytes(name))) < len(name), at+".host",
			"not a host, *. and a host, or nothing: %q", r.Host)
		path, ok := canonical([]byte(r.Path))
		m.at(r.Path != "" && (r.Path[0] != '/' || !ok || string(path) != r.Path), at+".path",
			"not a path that begins with a slash, without escapes, dot segments and empty ones: %q", r.Path)
		r = Route{Host: strings.ToLower(r.Host), Path: strings.TrimSuffix(r.Path, "/")}
		m.at(seen[r], at, "another route has the same host and path")
		seen[r] = true
	}
	return errors.Join(m.all...)
}

func (m *mistakes) group(g *Group, at string) {
	m.at(!slices.Contains([]Policy{"", RoundRobin, LeastRequests, Hash}, g.Policy), at+".policy",
		"neither round-robin, least-requests nor hash: %q", g.Policy)
	kind, name, named := strings.Cut(g.Key, ":")
	valid := !named && (kind == "source" || kind == "path") ||
		(kind == "header" || kind == "cookie") && syntax.Token.Only(syntax.Bytes(name)) && name != ""
	m.at(g.Policy == Hash && !valid, at+".key", "neither source, path, header: and a name, nor cookie: and a name: %q", g.Key)
	m.at(g.Policy != Hash && g.Key != "", at+".key", "only the policy hash has a key")
	m.at(g.Retries > 100, at+".retries", "more than 100 percent: %d", g.Retries)
	m.at(g.MaxOut < 0 || g.MaxOut > 100, at+".max_out", "not a percentage: %d", g.MaxOut)
	for i, status := range g.Failures {
		m.at(status < 400 || status > 599, fmt.Sprintf("%s.failures[%d]", at, i), "not a status from 400 to 599: %d", status)
	}
	h := &g.Health
	m.at(h.Path != "" && (h.Path[0] != '/' || !syntax.Target.Only(syntax.Bytes(h.Path))), at+".health.path",
		"not a path: %q", h.Path)
	m.at(min(h.Out, h.Interval, h.Timeout) < 0 || min(h.Fall, h.Rise) < 0, at+".health", "a value is less than 0 that must not be")
	m.at(len(g.Backends) == 0, at+".backends", "a group needs a back end")
	seen := map[string]bool{}
	for i := range g.Backends {
		b, at := &g.Backends[i], fmt.Sprintf("%s.backends[%d]", at, i)
		m.at(seen[b.Address], at+".address", "another back end of the group has this address")
		seen[b.Address] = true
		if path, local := strings.CutPrefix(b.Address, "unix:"); local {
			m.at(path == "", at+".address", "unix: needs a path")
		} else {
			_, port, err := net.SplitHostPort(b.Address)
			if err == nil && port != "" {
				_, err = net.LookupPort("tcp", port)
			}
			m.at(err != nil || port == "", at+".address", `neither "host:port" nor "unix:" and a path: %q`, b.Address)
		}
		m.at(!syntax.ValidHost(syntax.Bytes(b.Host)), at+".host", "not a host: %q", b.Host)
		m.at(b.Weight < 0 || b.Weight > 1000, at+".weight", "not from 1 to 1000: %d", b.Weight)
		m.at(b.Proxy < 0 || b.Proxy > 2, at+".proxy", "PROXY headers are of version 1 or 2: %d", b.Proxy)
	}
}
