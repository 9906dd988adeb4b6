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
	level, rest, more := strings.Cut(name, "/")
	for _, want := range [...]string{level, "+", "#"} {
		child := n.children[want]
		switch {
		case child == nil || want != level && n.hides(level):
		case want == "#":
			found = append(found, child.shares...)
		case more:
			found = child.match(found, rest)
		default:
			found = append(found, child.shares...)
			if below := child.children["#"]; below != nil { // sport/# matches sport, too
				found = append(found, below.shares...)
			}
		}
	}
	return found
}

// hides reports whether a level below n matches neither + nor #.
func (n *node) hides(level string) bool { return n.parent == nil && strings.HasPrefix(level, "$") }

// each calls visit for the nodes of names that a filter matches, in order.
func (n *node) each(filter string, visit func(*node)) {
	want, rest, more := strings.Cut(filter, "/")
	levels := []string{want}
	if isWild(want) {
		levels = slices.Sorted(maps.Keys(n.children))
		levels = slices.DeleteFunc(levels, n.hides)
	}
	if want == "#" {
		rest, more = "#", true
		visit(n)
	}
	for _, level := range levels {
		switch child := n.children[level]; {
		case child == nil:
		case more:
			child.each(rest, visit)
		default:
			visit(child)
		}
	}
}
