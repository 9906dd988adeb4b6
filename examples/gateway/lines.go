package main

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lineOf returns the line of a file that has the value of a path such as "groups[1].backends[0].address". If it is not there, it
// is the line of what would have it: the nearest table or array around it. The file has no mistakes of TOML.
func lineOf(text []byte, path string) int {
	l := lines{at: map[string]int{"": 1}, elements: map[string]int{}}
	l.parser.Reset(text)
	table := ""
	for l.parser.NextExpression() {
		switch x := l.parser.Expression(); x.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = l.key("", x, x.Kind == unstable.ArrayTable)
		case unstable.KeyValue:
			l.value(l.key(table, x, false), x.Value())
		}
	}
	for {
		if n, is := l.at[path]; is {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

type lines struct {
	parser   unstable.Parser
	at       map[string]int // the line of each path
	elements map[string]int // of each array of tables
}

// key notes the line of a key within table, and returns its path. A part of a key that is an array of tables means the latest
// element.
func (l *lines) key(table string, x *unstable.Node, element bool) string {
	path := table
	for parts := x.Key(); parts.Next(); {
		part := parts.Node()
		if path != "" {
			path += "."
		}
		path += string(part.Data)
		switch n := l.elements[path]; {
		case element && parts.IsLast():
			l.elements[path]++
			path = fmt.Sprintf("%s[%d]", path, n)
		case n > 0:
			path = fmt.Sprintf("%s[%d]", path, n-1)
		}
		if _, is := l.at[path]; !is {
			l.at[path] = l.parser.Shape(part.Raw).Start.Line
		}
	}
	return path
}

// value notes the lines of what an array or a table within a line has.
func (l *lines) value(path string, x *unstable.Node) {
	switch x.Kind {
	case unstable.Array:
		n := 0
		for all := x.Children(); all.Next(); n++ {
			l.value(fmt.Sprintf("%s[%d]", path, n), all.Node())
		}
	case unstable.InlineTable:
		for all := x.Children(); all.Next(); {
			l.value(l.key(path, all.Node(), false), all.Node().Value())
		}
	}
	if _, is := l.at[path]; !is && x.Raw.Length > 0 {
		l.at[path] = l.parser.Shape(x.Raw).Start.Line
	}
}
