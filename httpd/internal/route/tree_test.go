package route

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

func treeOf(t testing.TB, patterns ...string) *Tree {
	table := new(Tree)
	for _, text := range patterns {
		require.NoError(t, table.Add(text))
	}
	return table
}

// askTree returns the result of a request "METHOD [host]/path": the pattern and its values, or the status.
func askTree(t testing.TB, table *Tree, request string) string {
	method, place, _ := strings.Cut(request, " ")
	slash := strings.IndexByte(place, '/')
	var v Values
	host, path := []byte(place[:slash]), []byte(place[slash:])
	n, found := table.Match([]byte(method), host, path, &v)
	pattern := v.Pattern()
	switch found {
	case NoPath:
		require.Empty(t, v.spans)
		return "404"
	case NoMethod:
		require.Empty(t, v.spans)
		return "405 " + strings.Join(table.Allow(host, path), ", ")
	}
	require.Equal(t, table.routes[n].text, pattern)
	for _, name := range table.routes[n].names {
		pattern += fmt.Sprintf(" %s=%s", name, v.Get(path, name))
	}
	return pattern
}

// What TestMatchAsServeMux does not draw, or ServeMux does otherwise.
func TestMatch(t *testing.T) {
	for rule, c := range map[string]struct {
		patterns []string
		asked    map[string]string
	}{
		"nothing was added": {nil, map[string]string{
			"GET /": "404", "GET a.com/b": "404",
		}},
		"a slash at the end is everything below": {[]string{"/", "/a/"}, map[string]string{
			"GET /": "/", "GET /b": "/", "GET /b/c/": "/", "GET /a/": "/a/", "GET /a/b": "/a/", "GET /a/b/c/": "/a/",
			"GET /a": "/", // where ServeMux redirects
		}},
		"a host goes before none": {[]string{"a.com/", "GET a.com/{x}", "/b", "POST /c", "GET b.com/c"}, map[string]string{
			"GET a.com/b": "GET a.com/{x} x=b", "POST a.com/b": "a.com/", "GET b.com/b": "/b", "GET /b": "/b", "POST b.com/c": "POST /c",
			"PUT b.com/c": "405 GET, HEAD, POST", "GET a.com.b/b": "/b", "GET b.com/d": "404",
		}},
		"a host has any port and any case": {[]string{"a.com/", "B.com/", "[::1]/"}, map[string]string{
			"GET a.com:80/": "a.com/", "GET A.COM:/": "a.com/", "GET b.COM/": "B.com/", "GET [::1]/": "[::1]/", "GET [::1]:80/": "[::1]/",
			"GET :80/": "404", "GET a.com./": "404", "GET " + strings.Repeat("a", 300) + "/": "404",
		}},
		"segments are compared decoded": {[]string{"GET /a b/{x}", "/%63/{x...}", "/100%"}, map[string]string{
			"GET /a%20b/%C3%BC": "GET /a b/{x} x=ü", "GET /%61%20b/y": "GET /a b/{x} x=y", "GET /c/%64/e%2e": "/%63/{x...} x=d/e.", "GET /100%25": "/100%",
			"GET /%63/%00": "/%63/{x...} x=\x00",
		}},
		"an escaped slash splits nothing": {[]string{"/{x}", "/a/{y}", "/a%2fb", "/{x}/c/{z...}", "/{$}"}, map[string]string{
			"GET /a%2Fc": "/{x} x=a/c", "GET /a%2Fb": "/a%2fb", "GET /a%2Fb/c/%2f/d": "/{x}/c/{z...} x=a/b z=//d",
			"GET /%2F": "/{x} x=/", // ServeMux takes it for /{$}
		}},
		"a bad escape is nothing": {[]string{"/", "/{x}"}, map[string]string{
			"GET /%": "404", "GET /%6": "404", "GET /a/%6g": "404", "GET /%%": "404", "GET /a/%/b": "404", "GET /%2/": "404",
		}},
		"only a clean path is something": {[]string{"/", "/{x}", "/a/{x...}"}, map[string]string{
			"GET //": "404", "GET //a": "404", "GET /a//": "404", "GET /a//b": "404", "GET /.": "404", "GET /./": "404", "GET /a/..": "404",
			"GET /a/../b": "404", "GET /a/%2e": "404", "GET /a/.%2E/b": "404", "GET /%2e%2E": "404", "GET /a/...": "/a/{x...} x=...",
			"GET /.a": "/{x} x=.a", "GET /%2ea": "/{x} x=.a", "GET /a/..%2f": "/a/{x...} x=../", "GET /%2e%2e%2e": "/{x} x=...",
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			for range 2 { // in whatever order they are added
				table := treeOf(t, c.patterns...)
				for request, want := range c.asked {
					require.Equal(t, want, askTree(t, table, request), "%s", request)
				}
				slices.Reverse(c.patterns)
			}
		})
	}
}

// "*", and targets that are not paths at all.
func TestMatchOfNoPath(t *testing.T) {
	var v Values
	for _, path := range []string{"", "*", "a", "%2F"} {
		_, found := treeOf(t, "/").Match([]byte("OPTIONS"), nil, []byte(path), &v)
		require.Equal(t, NoPath, found)
		require.Nil(t, treeOf(t, "GET /").Allow(nil, []byte(path)))
	}
}

func TestTreeAsItWasAfterARefusal(t *testing.T) {
	table := treeOf(t, "GET /{a}/b")
	require.Error(t, table.Add("POST /c/{"))
	require.Error(t, table.Add("GET /c/{d}"))
	require.Equal(t, "404", askTree(t, table, "GET /c/x"))
	require.NoError(t, table.Add("POST /c/{e}"))
	require.Equal(t, "POST /c/{e} e=x", askTree(t, table, "POST /c/x"))
}

func TestMatchValues(t *testing.T) {
	table := treeOf(t, "/a/{one}/{two...}", "/b")
	path := []byte("/a/x/y/z")
	var v Values
	require.Nil(t, v.Get(path, "one"))
	match := func(path []byte) Verdict { _, found := table.Match([]byte("GET"), nil, path, &v); return found }

	require.Equal(t, Matched, match(path))
	require.Same(t, &path[3], &v.Get(path, "one")[0]) // a span of the path
	require.Equal(t, 1, cap(v.Get(path, "one")))      // and no more of it
	require.Equal(t, "y/z", string(v.Get(path, "two")))
	require.Nil(t, v.Get(path, "three"))

	require.Equal(t, Matched, match([]byte("/a/%78/")))
	require.Equal(t, "x", string(v.Get(nil, "one")), "it has its own path")
	require.Equal(t, []byte{}, v.Get(nil, "two"))

	for _, other := range []string{"/b", "/c", "/a/%78/%", "//"} {
		match([]byte(other))
		require.Nil(t, v.Get(path, "one"), "of the match before")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	table := treeOf(t, "GET /a/{x}/c", "GET /a/b/d", "a.com/{x...}", "POST /e")
	var v Values
	for _, c := range []struct{ host, path string }{
		{"", "/a/b/c"}, {"A.com:80", "/a/b/c"}, {"b.com", "/a/b/d"}, {"", "/e"}, {"", "/f"}, {"", "/a/b%62/%63"}, {"", "/%"},
	} {
		method, host, path := []byte("GET"), []byte(c.host), []byte(c.path)
		require.Zero(t, testing.AllocsPerRun(100, func() { // it warms up once: that is when scratch is made
			table.Match(method, host, path, &v)
			v.Get(path, "x")
		}), "%v", c)
	}
}

// echoPattern answers with the pattern and its values, as askTree says them.
var echoPattern = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, r.Pattern)
	p, err := parsePattern(r.Pattern)
	for _, name := range p.names {
		fmt.Fprintf(w, " %s=%s", name, r.PathValue(name))
	}
	if err != nil {
		panic(err)
	}
})

// askServeMux is askTree for ServeMux.
func askServeMux(mux *http.ServeMux, request string) string {
	method, place, _ := strings.Cut(request, " ")
	slash := strings.IndexByte(place, '/')
	target, err := url.ParseRequestURI(place[slash:])
	if err != nil {
		return "404"
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, &http.Request{Method: method, URL: target, Host: place[:slash], ProtoMajor: 1, ProtoMinor: 1})
	switch w.Code {
	case http.StatusOK:
		return w.Body.String()
	case http.StatusMethodNotAllowed:
		return "405 " + w.Header().Get("Allow")
	}
	return fmt.Sprint(w.Code)
}

// drawn draws patterns and requests that have much in common.
type drawn struct{ *rand.Rand }

func (d drawn) oneOf(all ...string) string { return all[d.IntN(len(all))] }

func (d drawn) method() string { return d.oneOf("GET", "GET", "HEAD", "POST", "PUT") }

func (d drawn) pattern() string {
	text := d.oneOf("", "", d.method()+" ") + d.oneOf("", "", "", "a.com", "b.com")
	for i := range d.IntN(5) {
		text += "/" + d.oneOf("a", "a", "b", "b", "%61", "a%2Fb", "c.d", fmt.Sprintf("{w%d}", i), fmt.Sprintf("{v%d}", i))
	}
	ends := []string{"", "", "/", "/{$}", "/{r...}"}
	if text == "" || !strings.Contains(text, "/") {
		ends = ends[2:]
	}
	return text + d.oneOf(ends...)
}

// place is a host and a path.
func (d drawn) place() string {
	text := d.oneOf("", "a.com", "a.com:80", "b.com", "c.com")
	for range d.IntN(5) {
		text += "/" + d.oneOf("a", "a", "b", "b", "%61", "a%2Fb", "a%2fb%2F", "c.d", "c%2ed", "e", "...", "%25")
	}
	if d.IntN(3) == 0 || !strings.Contains(text, "/") {
		text += "/"
	}
	return text
}

var everyMethod = []string{"GET", "HEAD", "POST", "PUT", "DELETE"}

// TestMatchAsServeMux: for sets of patterns drawn by a seed, ServeMux refuses the same ones for a conflict, and has
// the same to say about requests: pattern, values, status and Allow. Left out are places where it redirects one of
// the methods to the path with a slash, since then it does not say what it would do otherwise.
func TestMatchAsServeMux(t *testing.T) {
	compared, redirected, conflicts := 0, 0, 0
	for seed := range tier.Choose[uint64](400, 400, 4000) {
		d := drawn{rand.New(rand.NewPCG(seed, 1))}
		table, mux := new(Tree), new(http.ServeMux)
		for range 1 + d.IntN(25) {
			text := d.pattern()
			err := table.Add(text)
			require.Equal(t, accepts(mux, text, echoPattern), err == nil, "seed %d: %v", seed, err)
			if err != nil {
				conflicts++
			}
		}
		for range 50 {
			place := d.place()
			theirs := make([]string, len(everyMethod))
			for i, m := range everyMethod {
				theirs[i] = askServeMux(mux, m+" "+place)
			}
			if slices.Contains(theirs, "307") {
				redirected++
				continue
			}
			compared++
			for i, m := range everyMethod {
				require.Equal(t, theirs[i], askTree(t, table, m+" "+place), "seed %d: %s %s", seed, m, place)
			}
		}
	}
	t.Logf("%d places compared, %d left out, %d conflicts", compared, redirected, conflicts)
	require.Greater(t, compared, 4*redirected)
	require.Greater(t, conflicts, 500)
}
