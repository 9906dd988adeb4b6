package gateway

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tableOf makes a Table of back ends in one group, and of routes "host path".
func tableOf(t *testing.T, c Config) *Table {
	table, err := NewTable(c)
	require.NoError(t, err)
	return table
}

func TestRoutesOfHostsAndPaths(t *testing.T) {
	c := Config{}
	for _, r := range []string{" ", " /api", " /api/v2/", "example.com ", "example.com /api", "*.example.com ", "*.a.example.com /only"} {
		host, path, _ := strings.Cut(r, " ")
		c.Groups = append(c.Groups, Group{Name: r, Backends: []Backend{{Address: "a:1"}}})
		c.Routes = append(c.Routes, Route{Host: host, Path: path, Group: r})
	}
	table := tableOf(t, c)
	for request, want := range map[string]string{
		"other.com /":                   " ",
		" /":                            " ",
		"other.com /apis":               " ",
		"other.com /api":                " /api",
		"other.com /api/":               " /api",
		"other.com /api/v1":             " /api",
		"other.com /api/v2":             " /api/v2/",
		"other.com /api/v2/x":           " /api/v2/",
		"other.com *":                   " ",
		"example.com /":                 "example.com ",
		"EXAMPLE.com:8080 /api/v2":      "example.com /api",
		"a.example.com /":               "*.example.com ",
		"b.a.example.com /":             "*.example.com ",
		"b.a.example.com /only/x":       "*.a.example.com /only",
		"notexample.com /api":           " /api",
		"[::1]:80 /api":                 " /api",
		"other.com /%61pi":              " /api",
		"other.com //api":               " /api",
		"other.com /api//v2":            " /api/v2/",
		"other.com /%2fapi/x":           " /api",
		"other.com /api/.well-known":    " /api",
		"other.com /api/../x":           "none",
		"other.com /api/%2e%2E":         "none",
		"other.com /api/%2E/x":          "none",
		"other.com /api/x%2f..%2fadmin": "none",
		"other.com /%zz":                "none",
	} {
		host, path, _ := strings.Cut(request, " ")
		got := "none"
		if r := table.route([]byte(host), []byte(path)); r != nil {
			got = r.group.name
		}
		require.Equal(t, want, got, request)
	}
}

func TestMistakesHaveTheirPlaces(t *testing.T) {
	good := Group{Name: "g", Backends: []Backend{{Address: "a:1"}}}
	_, err := NewTable(Config{
		Name: "a\r\nb",
		Groups: []Group{good, good, {Name: "h", Policy: "any", Key: "source", Failures: []int{503, 200}, Retries: 101, MaxOut: -1,
			Health: Health{Path: "x", Out: -1, Interval: -1, Timeout: -1, Fall: -1, Rise: -1}},
			{Name: "i", Policy: Hash, Key: "header:", Backends: []Backend{
				{Address: "a:1"}, {Address: "a:1"}, {Address: "a"}, {Address: "a:65536"}, {Address: "unix:", Host: "a b", Weight: 1001, Proxy: 3}}}},
		Routes: []Route{{Group: "g"}, {Group: "G", Path: "/x"}, {Group: "g", Path: "/"}, {Group: "g", Host: "*"}, {Group: "g", Host: "a.*.b"},
			{Group: "g", Host: "a:80"}, {Group: "g", Path: "x"}, {Group: "g", Path: "/a//b"}, {Group: "g", Path: "/%61"}, {Group: "g", Path: "/.."}},
	})
	var places []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		m, is := errors.AsType[*Mistake](e)
		require.True(t, is)
		places = append(places, m.Path)
	}
	require.Equal(t, strings.Fields(`groups[1].name groups[2].policy groups[2].key groups[2].retries groups[2].max_out groups[2].failures[1]
		groups[2].health.path groups[2].health groups[2].backends groups[3].key groups[3].backends[1].address groups[3].backends[2].address
		groups[3].backends[3].address groups[3].backends[4].address groups[3].backends[4].host groups[3].backends[4].weight
		groups[3].backends[4].proxy name routes[1].group routes[2] routes[3].host routes[4].host routes[5].host routes[6].path routes[7].path routes[8].path routes[9].path`), places)
	_, err = NewTable(Config{})
	require.ErrorContains(t, err, "routes: there is no route")
}
