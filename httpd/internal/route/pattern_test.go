package route

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// String is the pattern as it was understood: literals in quotes, wildcards in braces.
func (p pattern) String() string {
	said := p.method + " " + p.host
	for _, s := range p.segments {
		said += "/" + [...]string{literal: "'" + s.text + "'", wildcard: "{" + s.text + "}", remainder: "{" + s.text + "...}", dollar: "$"}[s.kind]
	}
	return said
}

func TestValidPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"/":                   " /{...}",
		"/{$}":                " /$",
		"/a":                  " /'a'",
		"/a/":                 " /'a'/{...}",
		"/{a}/b/{c}":          " /{a}/'b'/{c}",
		"/a/{b}/{c...}":       " /'a'/{b}/{c...}",
		"/{_}/{größe}/{b2}":   " /{_}/{größe}/{b2}",
		"GET /":               "GET /{...}",
		"GET \t /a":           "GET /'a'",
		"M-SEARCH /a":         "M-SEARCH /'a'",
		"get /a":              "get /'a'", // another method than GET (RFC 9110 9.1)
		"GET /a b":            "GET /'a b'",
		"example.com/":        " example.com/{...}",
		"GET Example.COM/a":   "GET example.com/'a'",
		"[::1]/":              " [::1]/{...}",
		"/%61%2Fb/c%20d":      " /'a/b'/'c d'",
		"/100%":               " /'100%'", // no escape
		"/a}":                 " /'a}'",
		"/%7Bnot%7D":          " /'{not}'",
		"/.well-known/..a":    " /'.well-known'/'..a'",
		"/ü":                  " /'ü'",
		"/" + wildcardsOf(16): " /" + wildcardsOf(16),
	} {
		p, err := parsePattern(text)
		require.NoError(t, err)
		require.Equal(t, want, p.String(), "%q", text)
		require.Equal(t, text, p.text)
	}
}

// wildcardsOf is "{a}/{b}" and so on.
func wildcardsOf(n int) string {
	var names []string
	for i := range n {
		names = append(names, "{"+string(rune('a'+i))+"}")
	}
	return strings.Join(names, "/")
}

func TestInvalidPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "has no path",
		"a":                            "has no path",
		"GET":                          "has no path",
		"G(T /a":                       "not a token",
		"/a b":                         "not a token",
		"GET POST /a":                  "its host",
		"{a}/b":                        "its host",
		"a:80/":                        "its host",
		"::1/":                         "its host",
		"[::1]:80/":                    "its host",
		"ü/":                           "its host",
		"\u212a/":                      "its host", // its lower case is k
		strings.Repeat("a", 256) + "/": "its host",
		"//":                           "an empty",
		"/a//b":                        "an empty",
		"http://a/b":                   "its host",
		"/a/.":                         "an empty",
		"/../a":                        "an empty",
		"/a/%2E%2e/b":                  "an empty",
		"/.%2e/":                       "an empty",
		"/a{b}":                        "whole segment",
		"/{a}b":                        "whole segment",
		"/{a/b}":                       "whole segment",
		"/{a...}/b":                    "for the last",
		"/{}":                          "identifier",
		"/{$...}":                      "identifier",
		"/{1}":                         "identifier",
		"/{a}{b}":                      "identifier",
		"/{\xff}":                      "identifier",
		"/{a}/{a}":                     "same name",
		"/{a}/{a...}":                  "same name",
		"/" + wildcardsOf(17):          "more than 16",
	} {
		_, err := parsePattern(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
	_, err := parsePattern("/{$}/a")
	require.EqualError(t, err, `httpd: pattern "/{$}/a": {$} and {name...} are for the last segment`)
}

// How conflicts are said. TestMatchAsServeMux shows which patterns do.
func TestPatternsThatConflict(t *testing.T) {
	const alike, crossing, none = "matches the same requests as", "conflicts with", ""
	for _, c := range []struct{ a, b, want string }{
		{"/a", "/%61", alike},
		{"/a/", "/a/{b...}", alike},
		{"a.com/b", "A.COM/b", alike},
		{"GET /a", "POST /a", none},
		{"/a/{b}", "/{a}/b", crossing},
		{"GET /", "/a", crossing},
		{"/%2F/{b}", "/{a}/b", crossing},
		{"/%2F", "/{$}", none},
	} {
		for range 2 { // it is so from both sides
			var table Tree
			require.NoError(t, table.Add(c.a))
			err := table.Add(c.b)
			if c.want == none {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "httpd: pattern \""+c.b+"\" "+c.want+" \""+c.a+"\"")
			}
			c.a, c.b = c.b, c.a
		}
	}
}

// accepts reports whether ServeMux accepts a pattern, beside those it has.
func accepts(mux *http.ServeMux, text string, h http.Handler) (ok bool) {
	defer func() { ok = recover() == nil }()
	mux.Handle(text, h)
	return
}

var ourRefusals = []string{"its host", "an empty", "more than 16"}

// FuzzPattern: ServeMux accepts each pattern that is accepted here; one that it accepts is refused only if it can never
// match or is over a bound.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"GET a.b/c/{d}/{e...}", "/{$}", "/%61%2f/%zz/", "a /{b}/c/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePattern(text)
		switch theirs := accepts(new(http.ServeMux), text, http.NotFoundHandler()); {
		case err == nil:
			require.True(t, theirs, "%q is %v", text, p)
		case theirs:
			require.True(t, slices.ContainsFunc(ourRefusals, func(why string) bool { return strings.Contains(err.Error(), why) }), "%q: %v", text, err)
		}
	})
}
