package httpd

import (
	"bytes"
	"slices"
)

// tree finds what belongs to a request by patterns. The zero value is ready and has none. First everything is
// added, by one goroutine; then any number of threads may match at the same time, without a lock.
//
// A match visits each node at most once for the request's host and once for any host, so it costs what was
// registered, whatever strangers ask for; a path of ten literals costs ten look-ups. A path is matched as it is:
// it is not cleaned, there are no redirects, and "/a" is not tried as "/a/". What is no path in its clean form
// (empty segments, "." or "..", also escaped) or has a bad escape matches nothing, not even "/".
type tree[T any] struct {
	table
	of []T // by the number of the route
}

// table is a tree but for what is found in it.
type table struct {
	anyHost node
	hosts   map[string]*node
	routes  []*route
	methods []string // of all routes, sorted, HEAD with GET
}

// route is a pattern in a table.
type route struct {
	pattern
	number int // in the order of add
}

// node is a place in the paths of a host. Among what can follow, that which comes first here is the more specific,
// so it is tried first; if it leads nowhere the next is tried.
type node struct {
	literal map[string]*node
	one     *node

	// Patterns end here:
	here leaf // with the path, without a further slash
	end  leaf // with the slash
	rest leaf // with the slash and whatever follows
}

// leaf has the routes of one path, which differ by their methods: narrower before wider.
type leaf []*route

// verdict is what became of a match.
type verdict uint8

const (
	noPath   verdict = iota // there is nothing at this path: 404
	noMethod                // there is, but not for this method: 405
	matched
)

// add makes the requests of a pattern lead to something. It is an error if the text is no pattern, or if the pattern
// conflicts with one that was added before; the error names both, and nothing is added. Each is compared with all
// before it: a thousand patterns take some thirty milliseconds.
func (t *tree[T]) add(text string, of T) error {
	if err := t.table.add(text); err != nil {
		return err
	}
	t.of = append(t.of, of)
	return nil
}

// match finds what was added for the most specific pattern of a request, and that pattern. host may have a port and
// may be empty; path is that of the target, as it came. The values are those of this match afterwards, or none.
func (t *tree[T]) match(method, host, path []byte, v *values) (of T, pattern string, found verdict) {
	r, found := t.find(method, host, path, v)
	if found != matched {
		return of, "", found
	}
	return t.of[r.number], r.text, matched
}

// allow is what a 405 says in its Allow field: the methods that would match, of those that patterns name, sorted.
func (t *tree[T]) allow(host, path []byte) []string {
	var methods []string
	var v values
	for _, m := range t.methods {
		if _, found := t.find([]byte(m), host, path, &v); found == matched {
			methods = append(methods, m)
		}
	}
	return methods
}

func (t *table) add(text string) error {
	p, err := parsePattern(text)
	if err != nil {
		return err
	}
	for _, o := range t.routes {
		if err := p.conflict(&o.pattern); err != nil {
			return err
		}
	}
	r := &route{p, len(t.routes)}
	t.routes = append(t.routes, r)
	t.name(p.method)
	t.root(p.host).leaf(p.segments).add(r)
	return nil
}

// name keeps the methods sorted.
func (t *table) name(method string) {
	if method == "GET" {
		t.name("HEAD")
	}
	if i, found := slices.BinarySearch(t.methods, method); !found && method != "" {
		t.methods = slices.Insert(t.methods, i, method)
	}
}

func (t *table) root(host string) *node {
	if host == "" {
		return &t.anyHost
	}
	if t.hosts == nil {
		t.hosts = make(map[string]*node)
	}
	if t.hosts[host] == nil {
		t.hosts[host] = new(node)
	}
	return t.hosts[host]
}

// leaf is where a path ends; what is missing on the way is made.
func (n *node) leaf(path []segment) *leaf {
	for _, s := range path {
		switch s.kind {
		case dollar:
			return &n.end
		case remainder:
			return &n.rest
		case wildcard:
			if n.one == nil {
				n.one = new(node)
			}
			n = n.one
		case literal:
			if n.literal == nil {
				n.literal = make(map[string]*node)
			}
			if n.literal[s.text] == nil {
				n.literal[s.text] = new(node)
			}
			n = n.literal[s.text]
		}
	}
	return &n.here
}

func (l *leaf) add(r *route) {
	i := slices.IndexFunc(*l, func(o *route) bool { return compareMethods(o.method, r.method) == wider })
	if i < 0 {
		i = len(*l)
	}
	*l = slices.Insert(*l, i, r)
}

func (t *table) find(method, host, path []byte, v *values) (*route, verdict) {
	if !v.take(path) {
		return nil, noPath
	}
	w := walk{values: v, method: method}
	var r *route
	if n := t.hosted(host); n != nil {
		r = w.from(n, path, 0, 0)
	}
	if r == nil {
		r = w.from(&t.anyHost, path, 0, 0)
	}
	switch {
	case r != nil:
		v.names = r.names
		return r, matched
	case w.others:
		return nil, noMethod
	}
	return nil, noPath
}

func (t *table) hosted(host []byte) *node {
	if len(t.hosts) == 0 {
		return nil
	}
	host = withoutPort(host)
	if len(host) > maxHost {
		return nil
	}
	var lower [maxHost]byte
	for i, b := range host {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return t.hosts[string(lower[:len(host)])]
}

// walk is one match. It goes along two texts of the path: the raw one says where a segment ends, the decoded one
// what it is. Without escapes they are the same.
type walk struct {
	*values
	method []byte
	others bool // a path was found, but for other methods
}

// from goes on at a node. raw is what is left of the path, at is where the decoded path is, wild how many segments
// matched a wildcard so far.
func (w *walk) from(n *node, raw []byte, at uint32, wild int) *route {
	var r *route
	switch len(raw) {
	case 0:
		return w.ask(n.here)
	case 1:
		r = w.ask(n.end)
	default:
		r = w.into(n, raw, at, wild)
	}
	if r != nil {
		return r
	}
	if r = w.ask(n.rest); r != nil && len(r.names) > wild {
		w.spans[wild] = span{at + 1, uint32(len(w.decoded))}
	}
	return r
}

// into takes the next segment.
func (w *walk) into(n *node, raw []byte, at uint32, wild int) *route {
	i := 1 + bytes.IndexByte(raw[1:], '/')
	if i == 0 {
		i = len(raw)
	}
	s := span{at + 1, at + uint32(i)}
	if w.escaped {
		s.to -= 2 * uint32(bytes.Count(raw[:i], percent))
	}
	if next := n.literal[string(s.of(w.decoded))]; next != nil {
		if r := w.from(next, raw[i:], s.to, wild); r != nil {
			return r
		}
	}
	if n.one == nil {
		return nil
	}
	w.spans[wild] = s
	return w.from(n.one, raw[i:], s.to, wild+1)
}

var percent = []byte{'%'}

// ask is the narrowest route for the method.
func (w *walk) ask(l leaf) *route {
	for _, r := range l {
		if r.serves(w.method) {
			return r
		}
	}
	w.others = w.others || len(l) > 0
	return nil
}

func (r *route) serves(method []byte) bool {
	return r.method == "" || r.method == string(method) || r.method == "GET" && string(method) == "HEAD"
}

// values are what the wildcards of a match stand for. The zero value is ready. It is for one match at a time, and is
// used again, since it keeps memory to decode in: at most what the longest path takes, and nothing if no path had an
// escape.
type values struct {
	names   []string // of the pattern that matched
	spans   [maxWildcards]span
	decoded []byte // the path: the caller's octets, or scratch
	scratch []byte
	escaped bool
}

// get is what a wildcard stands for, decoded; nil if the pattern has none of this name. {name...} may be empty, and
// then it is not nil. It is valid as long as the path and until the next match.
//
// It may hold any octet, from "%2F" also slashes, and so "..": to open a file by it, ask filepath.IsLocal first.
func (v *values) get(name string) []byte {
	for i, n := range v.names {
		if n == name {
			return v.spans[i].of(v.decoded)
		}
	}
	return nil
}

// moved is to be called when the octets of the path are somewhere else, as when a request is kept.
func (v *values) moved(path []byte) {
	if !v.escaped {
		v.decoded = path
	}
}

// take makes ready for the match of a path, and tells whether it is one that can match.
func (v *values) take(path []byte) (ok bool) {
	v.names, v.decoded, v.escaped = nil, path, bytes.IndexByte(path, '%') >= 0
	if !clean(path) {
		return false
	}
	if !v.escaped {
		return true
	}
	v.scratch, ok = unescape(v.scratch[:0], path)
	v.decoded = v.scratch
	return ok
}
