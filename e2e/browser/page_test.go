package browser

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nothingElse is about these tests, and not about the server.
func nothingElse(t *testing.T, p *tab) {
	start(t, p, t.TempDir())
	for _, elsewhere := range []string{"http://example.org/", "http://127.0.0.2/", "http://[::1]/", "http://192.0.2.1/", "http://localhost/"} {
		run[any](t, p, `async url => { await fetch(url, {mode: "no-cors"}).catch(() => {}) }`, elsewhere)
		require.Equal(t, "net::ERR_NAME_NOT_RESOLVED", p.exchanges(t)[0].failed, elsewhere)
	}
}

// look is what a page looks like.
type look struct {
	Title, Color, Module string
	Images               []struct {
		Complete bool
		Width    int
	}
}

func looks(t *testing.T, p *tab) look {
	t.Helper()
	return run[look](t, p, `() => ({
		Title: document.title,
		Color: getComputedStyle(document.querySelector("h1")).color,
		Module: document.body.dataset.module,
		Images: [...document.images].map(i => ({Complete: i.complete, Width: i.naturalWidth})),
	})`)
}

func page(flags ...string) func(*testing.T, *tab) {
	return func(t *testing.T, p *tab) {
		s := serve(t, site(t), flags...)
		require.EqualValues(t, 200, p.visit(t, s.url("/files/")))
		seen := looks(t, p)
		require.Equal(t, "Sixty pictures – 絵", seen.Title)
		require.Equal(t, "rgb(1, 2, 3)", seen.Color)
		require.Equal(t, "ran", seen.Module)
		require.Len(t, seen.Images, pictures)
		for i, image := range seen.Images {
			require.True(t, image.Complete, i)
			require.Equal(t, 8+3*i, image.Width, i)
		}
		all := p.exchanges(t)
		require.Len(t, all, 1+1+2+pictures)
		for _, e := range all {
			require.EqualValues(t, 200, e.status, e.url)
			require.Empty(t, e.failed, e.url)
		}
		// Chromium has at most 6 connections to a server at a time. It opens further ones if the server closes some.
		require.Greater(t, len(conns(all)), 1)
		require.LessOrEqual(t, len(conns(all)), 6)
	}
}

func exactly(t *testing.T, p *tab) {
	root := site(t)
	s := serve(t, root)
	p.visit(t, s.url("/files/"))
	got := run[map[string]string](t, p, `async () => Object.fromEntries(await Promise.all([...document.images].map(async i =>
		[i.getAttribute("src"), await hash(await (await get(i.src)).arrayBuffer())])))`)
	require.Len(t, got, pictures)
	for name, sum := range got {
		file, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, hash(file), sum, name)
	}
	require.LessOrEqual(t, len(conns(p.exchanges(t))), 6)
}

func reload(t *testing.T, p *tab) {
	root := site(t)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		// Of a time to come clients are told that it is now. So nothing is fresh for a tenth of its age, as heuristics go
		// (RFC 9111 4.2.2), and the browser asks for all of it again.
		later := time.Now().Add(time.Hour)
		return errors.Join(err, os.Chtimes(path, later, later))
	}))
	s := serve(t, root)
	p.visit(t, s.url("/files/"))
	seen, first := looks(t, p), p.exchanges(t)

	put(t, root, "style.css", []byte("h1 { color: rgb(40, 50, 60) }"))
	p.reload(t)
	seen.Color = "rgb(40, 50, 60)"
	require.Equal(t, seen, looks(t, p))
	again := p.exchanges(t)
	require.Len(t, again, len(first))
	for _, e := range again {
		status := 304
		if strings.HasSuffix(e.url, "/style.css") {
			status = 200
		}
		require.EqualValues(t, status, e.status, e.url)
	}
}

func missing(t *testing.T, p *tab) {
	s := start(t, p, t.TempDir())
	require.Equal(t, 404, run[int](t, p, `async () => (await get("/files/nor/here")).status`))
	require.Equal(t, 404, run[int](t, p, `async () => (await get("/nowhere", {method: "POST", body: "x".repeat(1000)})).status`))
	require.Equal(t, "Hello, World!", run[string](t, p, `async () => (await get("/")).text()`))
	require.Len(t, conns(p.exchanges(t)), 1, "no answer costs the connection")
	require.EqualValues(t, 404, p.visit(t, s.url("/files/no/such-page.html")))
	require.Equal(t, "404 Not Found", run[string](t, p, `() => document.body.innerText.trim()`))
}

func names(t *testing.T, p *tab) {
	root := t.TempDir()
	all := []string{
		"plain.txt", "two words.txt", "grüße.txt", "日本語/絵 1.txt", "fox 🦊.txt", "e\u0301.txt", "\u00e9.txt",
		"100%.txt", "%41.txt", "%2F.txt", "a+b & c=d;e,f.txt", "what?.txt", "no#1.txt", `it's "quoted".txt`, "<b>[1]{2}|^`~@!$().txt",
	}
	for _, name := range all {
		put(t, root, name, []byte("I am "+name))
	}
	const dir = "ein größeres Verzeichnis"
	put(t, root, dir+"/index.html", []byte(`<title>index</title><link rel=icon href="data:,">`))
	s := start(t, p, root)
	for _, row := range []struct{ name, function, except string }{
		{"what has to be escaped", `name => name.split("/").map(encodeURIComponent).join("/")`, ""},
		{"every byte but the slash", `name => [...new TextEncoder().encode(name)].map(
			b => b === 47 ? "/" : "%" + b.toString(16).padStart(2, "0")).join("")`, ""},
		{"by the browser itself", `name => name + "?query"`, "%?#"},
	} {
		for _, name := range all {
			if !strings.ContainsAny(name, row.except) {
				got := run[string](t, p, `async name => (await get("/files/" + (`+row.function+`)(name))).text()`, name)
				require.Equal(t, "I am "+name, got, row.name)
			}
		}
	}
	require.EqualValues(t, 200, p.visit(t, s.url("/files/"+dir+"?a=b")), "redirected")
	require.Equal(t, []string{"index", s.url("/files/" + url.PathEscape(dir) + "/?a=b")}, run[[]string](t, p, `() => [document.title, location.href]`))
}
