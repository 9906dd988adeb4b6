package topic

import (
	"maps"
	"slices"
	"strings"
)

// node is a level of the tree of filters and names: the path from the root to it is a filter or the name of a topic. A name
// has a node if something is kept for it. All fields belong to the lock of the Broker.
type node struct {
	parent   *node
	level    string
	children map[string]*node
	shares   []*share // the subscriptions, by scheduler
	record   *record  // what is kept for the topic of this name; nil: nothing
}

// find returns the node of a path. If there is none, it makes one, or returns nil.
func (n *node) find(path string, make bool) *node {
	for level := range strings.SplitSeq(path, "/") {
		child := n.children[level]
		if child == nil {
			if !make {
				return nil
			}
			child = n.grow(strings.Clone(level))
		}
		n = child
	}
	return n
}

func (n *node) grow(level string) *node {
	child := &node{parent: n, level: level}
	if n.children == nil {
		n.children = map[string]*node{}
	}
	n.children[level] = child
	return child
}

// prune removes n, and the nodes above it, if nothing is in them.
func (n *node) prune() {
	for n.parent != nil && len(n.children) == 0 && len(n.shares) == 0 && n.record == nil {
		delete(n.parent.children, n.level)
		n = n.parent
	}
}

// path returns the filter or name of n.
func (n *node) path() string {
	if n.parent == nil || n.parent.parent == nil {
		return n.level
	}
	return n.parent.path() + "/" + n.level
}

// match appends the shares of the filters that match name. It visits at most two nodes for each node of a filter's prefix
// that matches so far, however many subscriptions there are.
func (n *node) match(found []*share, name string) []*share {
	return n.matchRest(found, name, name[0] != '$')
}

func (n *node) matchRest(found []*share, name string, wild bool) []*share {
	level, rest, more := strings.Cut(name, "/")
	for _, want := range [...]string{level, "+", "#"} {
		child := n.children[want]
		switch {
		case child == nil || want != level && !wild:
		case want == "#":
			found = append(found, child.shares...)
		case more:
			found = child.matchRest(found, rest, true)
		default:
			found = append(found, child.shares...)
			if below := child.children["#"]; below != nil { // sport/# matches sport, too
				found = append(found, below.shares...)
			}
		}
	}
	return found
}

// each calls visit for the nodes of names that a filter matches.
func (n *node) each(filter string, visit func(*node)) { n.eachRest(filter, true, visit) }

func (n *node) eachRest(filter string, top bool, visit func(*node)) {
	want, rest, more := strings.Cut(filter, "/")
	switch want {
	case "#":
		if !top {
			visit(n)
		}
		n.eachChild(top, func(child *node) { child.eachRest("#", false, visit) })
	case "+":
		n.eachChild(top, func(child *node) { child.eachAfter(rest, more, visit) })
	default:
		if child := n.children[want]; child != nil {
			child.eachAfter(rest, more, visit)
		}
	}
}

func (n *node) eachAfter(rest string, more bool, visit func(*node)) {
	if more {
		n.eachRest(rest, false, visit)
	} else {
		visit(n)
	}
}

// eachChild visits the children in order; at the top not the ones that begin with $.
func (n *node) eachChild(top bool, visit func(*node)) {
	for _, level := range slices.Sorted(maps.Keys(n.children)) {
		if !top || level == "" || level[0] != '$' {
			visit(n.children[level])
		}
	}
}
