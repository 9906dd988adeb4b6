package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closed is how long a server goes on that has closed all connections. Chromium does not look at those that it has no
// use for, so it does not close its side; the server waits half a second for that. Requests would have 30 s.
const closed = 10 * time.Second

func endIdle(t *testing.T, p *tab) {
	s := serve(t, site(t))
	p.visit(t, s.url("/files/"))
	require.Greater(t, len(conns(p.exchanges(t))), 1, "connections that are idle now")
	s.terminate(t)
	s.ends(t, closed)
	require.Equal(t, "TypeError", run[string](t, p, `() => get("/").then(() => "it answers", e => e.name)`))
}

func endBusy(t *testing.T, p *tab) {
	root, whole := t.TempDir(), content(64<<20) // more than all buffers on the way
	path := put(t, root, "large.bin", whole)
	s := start(t, p, root)
	run[any](t, p, `async () => {
		window.reader = (await get("/files/large.bin")).body.getReader();
		window.pieces = [(await window.reader.read()).value];
	}`)
	s.terminate(t)
	eventually(t, "the server to accept no more", func() bool {
		return run[bool](t, p, `() => get("/").then(() => false, () => true)`)
	})
	require.False(t, s.Gone())
	require.Equal(t, 1, s.holds(t, path), "it still sends")
	require.Equal(t, hash(whole), run[string](t, p, `async () => {
		for (let piece; !(piece = await window.reader.read()).done; window.pieces.push(piece.value));
		return hash(await new Blob(window.pieces).arrayBuffer());
	}`))
	s.ends(t, closed)
}
