package route

import (
	"bytes"
	"slices"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Tree finds the value whose pattern matches a request. The zero value is ready and empty. One goroutine adds
// everything first; then any number of threads may match at the same time, without a lock.
//
// A match visits each node at most once for the host of the request and once for any host, so the patterns bound its cost,
// whatever a client asks for. A path is matched as it is: it is not cleaned, there are no redirects, and "/a" is not tried
// as "/a/". A path that is not clean (empty segments, "." or "..", also escaped) or has a bad escape matches nothing.
type Tree struct {
	anyHost node
	hosts   map[string]*node
	routes  []*route
	methods []string // of all routes, sorted, HEAD with GET
}

// route is a pattern in a Tree.
type route struct {
	pattern
	number int // in the order of Add
}

// node is a place in the paths of a host. Its ways on are tried in the order of the fields, the most specific first.
type node struct {
	literal map[string]*node
	one     *node

	// The patterns that end here:
	here leaf // without a further slash
	end  leaf // with a slash
	rest leaf // with a slash and anything after it
}

// leaf has the routes of one path, which differ by method: narrower ones first.
type leaf []*route

// Verdict is the result of a match.
type Verdict uint8

// The verdicts.
const (
	NoPath   Verdict = iota // nothing matches the path: 404
	NoMethod                // something does, but not with this method: 405
	Matched
)

// Add adds a pattern. Patterns are numbered from 0 in the order in which they are added. It returns an error, and adds
// nothing, if the text is not a pattern or if the pattern conflicts with an earlier one; the error names both. Each pattern
// is compared with all before it: a thousand patterns take about thirty milliseconds.
func (t *Tree) Add(text string) error {
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

// Match returns the number of the most specific pattern that matches a request. host may have a port and may be empty; path is
// that of the target, as it came. v then has the pattern and the values of this match, or else no values.
func (t *Tree) Match(method, host, path []byte, v *Values) (number int, found Verdict) {
	if found = t.find(method, host, path, v); found != Matched {
		return -1, found
	}
	return v.route.number, Matched
}

// Allow returns the methods that would match, among the ones that patterns name, sorted: the Allow field of a 405.
func (t *Tree) Allow(host, path []byte) []string {
	var methods []string
	var v Values
	for _, m := range t.methods {
		if t.find([]byte(m), host, path, &v) == Matched {
			methods = append(methods, m)
		}
	}
	return methods
}

// Methods returns the methods that patterns name, and another one, sorted.
func (t *Tree) Methods(another string) []string {
	all := Tree{methods: slices.Clone(t.methods)}
	all.name(another)
	return all.methods
}

// HasMethod reports whether a pattern names the method.
func (t *Tree) HasMethod(method []byte) bool { return slices.Contains(t.methods, string(method)) }

// name inserts a method, and HEAD with GET, into the sorted methods.
func (t *Tree) name(method string) {
	if method == "GET" {
		t.name("HEAD")
	}
	if i, found := slices.BinarySearch(t.methods, method); !found && method != "" {
		t.methods = slices.Insert(t.methods, i, method)
	}
}

func (t *Tree) root(host string) *node {
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

// leaf returns the leaf at which a path ends, and makes the nodes that are missing on the way.
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

func (t *Tree) find(method, host, path []byte, v *Values) (found Verdict) {
	w := walk{Values: v, method: method}
	if !w.take(path) {
		return NoPath
	}
	var r *route
	if len(t.hosts) > 0 {
		if n := t.hosted(host); n != nil {
			r = w.from(n, path, 0, 0)
		}
	}
	if r == nil {
		r = w.from(&t.anyHost, path, 0, 0)
	}
	switch {
	case r != nil:
		v.route, v.spans = r, v.spans[:len(r.names)]
		return Matched
	case w.others:
		found = NoMethod
	}
	v.spans = v.spans[:0]
	return found
}

func (t *Tree) hosted(host []byte) *node {
	host = syntax.WithoutPort(host)
	if len(host) > maxHost {
		return nil
	}
	var lower [maxHost]byte
	for i, b := range host {
		lower[i] = syntax.Lower[b]
	}
	return t.hosts[string(lower[:len(host)])]
}

// walk is one match. It goes along two texts of the path: a segment ends where the raw one says, and is compared in
// the decoded one. Without escapes they are the same.
type walk struct {
	*Values
	method  []byte
	decoded []byte // the path, or the scratch of Values
	others  bool   // the path matched, but with other methods
}

// from continues at a node. raw is the rest of the path, at its position in the decoded path, and wild how many segments
// have matched a wildcard so far.
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
		w.spans = append(w.spans[:wild], syntax.Span{From: at + 1, To: uint32(len(w.decoded))})
	}
	return r
}

// into takes the next segment.
func (w *walk) into(n *node, raw []byte, at uint32, wild int) *route {
	i := 1 + bytes.IndexByte(raw[1:], '/')
	if i == 0 {
		i = len(raw)
	}
	s := syntax.Span{From: at + 1, To: at + uint32(i)}
	if len(w.scratch) > 0 {
		s.To -= 2 * uint32(bytes.Count(raw[:i], percent))
	}
	if next := n.literal[string(s.Of(w.decoded))]; next != nil {
		if r := w.from(next, raw[i:], s.To, wild); r != nil {
			return r
		}
	}
	if n.one == nil {
		return nil
	}
	w.spans = append(w.spans[:wild], s)
	return w.from(n.one, raw[i:], s.To, wild+1)
}

var percent = []byte{'%'}

// ask returns the narrowest route of the leaf for the method.
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

// Values are the values of the wildcards of a match. The zero value is ready. It serves one match at a time, and is used
// again: it keeps memory for as many wildcards as a match had, and to decode in, as much as the longest path with an escape took.
type Values struct {
	route   *route        // that matched; nil: none
	spans   []syntax.Span // of the path
	scratch []byte        // the path, decoded, if it has an escape
}

// Get returns the value of a wildcard of the pattern that path has matched, decoded, or nil if the pattern has no wildcard of
// this name. The value of {name...} may be empty, but is not nil then. It is valid as long as the path and until the next match.
// It may hold any byte, also slashes from "%2F", and so "..".
func (v *Values) Get(path []byte, name string) []byte {
	if len(v.scratch) > 0 {
		path = v.scratch
	}
	for i, s := range v.spans {
		if v.route.names[i] == name {
			return s.Of(path)
		}
	}
	return nil
}

// Pattern returns the text of the pattern of the latest match, or "" if there was none.
func (v *Values) Pattern() string {
	if v.route == nil {
		return ""
	}
	return v.route.text
}

// Reset forgets the last match.
func (v *Values) Reset() { v.route, v.spans = nil, v.spans[:0] }

// take prepares the match of a path, and reports whether the path is one that can match.
func (w *walk) take(path []byte) (ok bool) {
	w.spans, w.scratch, w.decoded = w.spans[:0], w.scratch[:0], path
	escaped, ok := clean(path)
	if !ok || !escaped {
		return ok
	}
	w.scratch, ok = syntax.Unescape(w.scratch, path)
	w.decoded = w.scratch
	return ok
}
