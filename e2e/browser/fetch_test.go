package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func head(t *testing.T, p *tab) {
	root := t.TempDir()
	put(t, root, "small.txt", content(1000))
	put(t, root, "large.bin", content(1<<20))
	start(t, p, root)
	for path, length := range map[string]string{"/": "13", "/files/small.txt": "1000", "/files/large.bin": "1048576"} {
		require.Equal(t, []any{200., length, 0.}, run[[]any](t, p, `async path => {
			const response = await get(path, {method: "HEAD"});
			return [response.status, response.headers.get("Content-Length"), (await response.arrayBuffer()).byteLength];
		}`, path))
	}
	require.Equal(t, "Hello, World!", run[string](t, p, `async () => (await get("/")).text()`))
	require.Len(t, conns(p.exchanges(t)), 1, "where an answer without a body ends is clear")
}

// uploads are of less than the sockets' buffers hold, see doc.go.
func uploads(t *testing.T, p *tab) {
	start(t, p, t.TempDir())
	for _, size := range []int{0, 1, 5 << 20} {
		require.Equal(t, []string{"same", "same", "same"}, run[[]string](t, p, `size => Promise.all([1, 2, 3].map(async seed => {
			const body = new Uint8Array(size);
			for (let i = 0, x = seed; i < size; i++) {
				x = (Math.imul(x, 1103515245) + 12345) >>> 0;
				body[i] = x >>> 16;
			}
			const response = await get("/echo", {method: "POST", body});
			const back = await response.arrayBuffer();
			return await hash(back) === await hash(body) ? "same" : response.status + " with " + back.byteLength + " bytes";
		}))`, size))
	}
	for _, e := range p.exchanges(t) {
		require.EqualValues(t, 200, e.status)
	}
}

func ranges(t *testing.T, p *tab) {
	root, whole := t.TempDir(), content(1<<20)
	put(t, root, "large.bin", whole)
	start(t, p, root)
	for asked, want := range map[string]struct{ from, to int }{
		"bytes=0-0":         {0, 0},
		"bytes=1000-300000": {1000, 300000},
		"bytes=1048000-":    {1048000, 1<<20 - 1},
		"bytes=-10":         {1<<20 - 10, 1<<20 - 1},
	} {
		contentRange, sum := fmt.Sprintf("bytes %d-%d/1048576", want.from, want.to), hash(whole[want.from:want.to+1])
		require.Equal(t, []any{206., contentRange, sum}, run[[]any](t, p, `async range => {
			const response = await get("/files/large.bin", {headers: {Range: range}});
			return [response.status, response.headers.get("Content-Range"), await hash(await response.arrayBuffer())];
		}`, asked))
	}
	require.Equal(t, []any{416., "bytes */1048576"}, run[[]any](t, p, `async () => {
		const response = await get("/files/large.bin", {headers: {Range: "bytes=1048576-"}});
		return [response.status, response.headers.get("Content-Range")];
	}`))
	require.Len(t, conns(p.exchanges(t)), 1)
}

func aborted(t *testing.T, p *tab) {
	root, whole := t.TempDir(), content(32<<20)
	path := put(t, root, "large.bin", whole)
	s := start(t, p, root)
	for range 5 {
		require.Equal(t, "AbortError", run[string](t, p, `async () => {
			const abort = new AbortController();
			const reader = (await get("/files/large.bin", {signal: abort.signal})).body.getReader();
			await reader.read();
			abort.abort();
			try { while (!(await reader.read()).done); } catch (e) { return e.name }
			return "came to its end";
		}`))
		require.Equal(t, "Hello, World!", run[string](t, p, `async () => (await get("/")).text()`))
		all := p.exchanges(t)
		require.Len(t, all, 2)
		require.Equal(t, "net::ERR_ABORTED", all[0].failed)
		require.Empty(t, all[1].failed)
	}
	eventually(t, "the server to close the file", func() bool { return s.holds(t, path) == 0 })
	require.Equal(t, hash(whole), run[string](t, p, `async () => hash(await (await get("/files/large.bin")).arrayBuffer())`))
}
