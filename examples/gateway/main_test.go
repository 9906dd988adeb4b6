package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

func TestMain(m *testing.M) { exectest.Main(m) }

// write writes a file, and returns its path.
func write(t *testing.T, path, text string) string {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestSample(t *testing.T) {
	_, err := (&files{path: "gateway.toml"}).read()
	require.NoError(t, err)
	text, err := os.ReadFile("gateway.toml")
	require.NoError(t, err)
	all := strings.ReplaceAll(string(text), "# total =  ", "# total = \"1h\" #")
	all = strings.ReplaceAll(all, "\n# The", "\n## The")
	all = strings.ReplaceAll(all, "ca = \"ca.pem\", ", "")
	for line := range strings.Lines(all) { // what is commented out is right, too
		if key, _, is := strings.Cut(line, " = "); is && strings.HasPrefix(key, "# ") && !strings.Contains(key[2:], " ") {
			all = strings.Replace(all, line, line[2:], 1)
		}
	}
	require.NotEqual(t, string(text), all)
	_, err = (&files{path: write(t, filepath.Join(t.TempDir(), "all.toml"), all)}).read()
	require.NoError(t, err)
}

func TestMistakesHaveTheirLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	const good = "[[groups]]\nname = 'g'\nbackends = [{ address = 'a:1' }]\n[[routes]]\ngroup = 'g'\n"
	for text, want := range map[string]string{
		good:                                     "",
		good + "host = 'a'":                      "",
		"x = 1\n" + good + "y = 2":               ":1: unknown key x\n:7: unknown key routes.y",
		"name = 1\n" + good:                      ":1: cannot decode TOML integer",
		"\nname\n" + good:                        ":2: expected",
		good + "group = 'g'":                     ":6: key group is already defined",
		good + "[groups.health]\nout = '10'":     ":7: groups[0].health.out: time: missing unit",
		good + "[groups.health]\nout = 10":       ":7: cannot decode TOML integer",
		good + "[[routes]]\ngroup = 'h'":         `:7: routes[1].group: there is no group "h"`,
		good + "[[routes]]\npath = '/x'":         `:6: routes[1].group: there is no group ""`,
		good + "[[routes]]\n\n[[routes]]\n":      ":6: routes[1].group: there is no group \"\"\n:6: routes[1]: another\n:8: routes[2].group",
		good + "[groups.health]\n\npath = 'x'":   ":8: groups[0].health.path: not a path",
		"groups = 1\n":                           ":1: cannot decode TOML integer",
		good + "[[groups]]\nname = 'h'":          ":6: groups[1].backends: a group needs a back end",
		good + "[routes.x]":                      ":6: unknown key routes.x",
		"routes = [\n{ group = 'a' },\n]\n":      ":2: routes[0].group: there is no group \"a\"",
		"":                                       ":1: routes: there is no route",
		"groups = [{ name = 'g', backends = [\n": ":",
		strings.Replace(good, "'a:1' }", "'a:1' },\n{ address = 'b' },\n{ address = 'c:1', weight = -1 }", 1): ":4: groups[0].backends[1].address: neither" +
			` "host:port" nor "unix:" and a path: "b"` + "\n:5: groups[0].backends[2].weight",
		strings.Replace(good, "'a:1'", "'a:1', tls = { ca = 'none.pem' }", 1): ":3: groups[0].backends[0].tls.ca: open none.pem",
	} {
		_, err := (&files{path: write(t, path, text)}).read()
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.Error(t, err, text)
		got := strings.Split(strings.ReplaceAll(err.Error(), path, ""), "\n")
		for i, line := range strings.Split(want, "\n") {
			require.Greater(t, len(got), i, text)
			require.Contains(t, got[i], line, text)
		}
	}
}

// A back end with TLS is the same after the file was read again, unless the file of its certificate has changed.
func TestTheSameConfigurationOfTLS(t *testing.T) {
	f := files{}
	a, err := f.security(security{Name: "a"})
	require.NoError(t, err)
	b, _ := f.security(security{Name: "b"})
	again, _ := f.security(security{Name: "a"})
	require.NotSame(t, a, b)
	require.Same(t, a, again)
}

func TestSIGHUPReadsTheFileAgain(t *testing.T) {
	tier.Need(t, tier.Full, "builds the program")
	site := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(s.Close)
		return "[[routes]]\ngroup = 'g'\n[[groups]]\nname = 'g'\nbackends = [{ address = '" + s.Listener.Addr().String() + "' }]\n"
	}
	path := write(t, filepath.Join(t.TempDir(), "gateway.toml"), site("first"))
	binary := exectest.Build{Dir: "."}
	p := exectest.Start(t, binary.Command(t, "-addr", "127.0.0.1:0", "-config", path))
	p.Listens(t, p.Said)
	get := func() string {
		r, err := http.Get("http://" + p.Addr)
		require.NoError(t, err)
		defer r.Body.Close()
		content, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(content)
	}
	defer http.DefaultClient.CloseIdleConnections()
	require.Equal(t, "first", get())

	write(t, path, "nothing = 1")
	p.Signal(t, syscall.SIGHUP)
	exectest.Eventually(t, exectest.Patience, "a line of the mistake", func() bool {
		return strings.Contains(p.Said(), path+":1: unknown key nothing")
	})
	require.Equal(t, "first", get())

	write(t, path, site("second"))
	p.Signal(t, syscall.SIGHUP)
	exectest.Eventually(t, exectest.Patience, "the reload", func() bool { return strings.Contains(p.Said(), "\treloaded") })
	require.Equal(t, "second", get())
	p.Stop(t)

	for _, text := range []string{site("x"), "x = 1"} {
		write(t, path, text)
		check := exectest.Start(t, binary.Command(t, "-config", path, "-check"))
		require.Equal(t, strings.Count(text, "x = 1"), check.Exit(t))
	}
}
