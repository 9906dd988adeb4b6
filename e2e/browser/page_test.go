package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

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

// loaded has a page of many files shown, and the server end while the browser keeps its connections.
func loaded(t *testing.T, p *tab) {
	s := serve(t, site(t))
	require.EqualValues(t, 200, p.visit(t, s.url("/files/")))
	seen := looks(t, p)
	require.Equal(t, "Pictures – 絵", seen.Title)
	require.Equal(t, "rgb(1, 2, 3)", seen.Color)
	require.Equal(t, "ran", seen.Module)
	require.Len(t, seen.Images, pictures)
	for i, image := range seen.Images {
		require.True(t, image.Complete, i)
		require.Equal(t, 8+3*i, image.Width, i)
	}
	require.Equal(t, 1+2+pictures, run[int](t, p, `() => performance.getEntriesByType("resource").filter(e => e.responseStatus === 200).length`))
	protocol := map[string]string{"http": "http/1.1", "https": "h2"}[s.scheme]
	require.Equal(t, protocol, run[string](t, p, `() => performance.getEntriesByType("navigation")[0].nextHopProtocol`))
	s.terminate(t)
	s.ends(t)
	require.Equal(t, "TypeError", run[string](t, p, `() => fetch("/").then(() => "it answers", e => e.name)`))
}

const pictures = 30

// site is a directory with a page and all that it needs: a style sheet, a module that imports another, and pictures of
// 7 to 80 KB, so the server reads some of them itself, and has the kernel send others. Picture i is 8 + 3*i pixels
// wide.
func site(t *testing.T) (root string) {
	root = t.TempDir()
	var page strings.Builder
	page.WriteString(`<!doctype html><html lang=en><meta charset=utf-8><title>Pictures – 絵</title>
		<link rel=icon href="data:,"><link rel=stylesheet href=style.css><script type=module src=main.mjs></script><h1>Here</h1>`)
	for i := range pictures {
		name, width := fmt.Sprintf("picture-%d.png", i), 8+3*i
		put(t, root, "pictures/"+name, noise(t, width))
		fmt.Fprintf(&page, "<img alt=%d src=pictures/%s>\n", i, name)
	}
	put(t, root, "index.html", []byte(page.String()))
	put(t, root, "style.css", []byte("h1 { color: rgb(1, 2, 3) }"))
	put(t, root, "main.mjs", []byte(`import { mark } from "./modules/mark.mjs"; mark(document.body)`))
	put(t, root, "modules/mark.mjs", []byte(`export const mark = element => { element.dataset.module = "ran" }`))
	return root
}

// noise is a picture that cannot be compressed.
func noise(t *testing.T, width int) []byte {
	m := image.NewGray(image.Rect(0, 0, width, 800))
	_, _ = rand.NewChaCha8([32]byte{}).Read(m.Pix) // never fails
	var b bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.NoCompression}
	require.NoError(t, fast.Encode(&b, m))
	return b.Bytes()
}

// put writes a file, and the directories above it.
func put(t *testing.T, root, name string, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

// messages has examples/websocket-echo send back messages that the browser has compressed, and compress them too: short
// ones, which both sides may leave as they are, long ones, and messages that no compression makes smaller.
func messages(t *testing.T, p *tab) {
	s := listen(t, "websocket-echo", "-compress")
	statuses := make(chan int64, 1)
	require.NoError(t, chromedp.Listen(p.ctx, func(event any) {
		if e, is := event.(*network.EventWebSocketHandshakeResponseReceived); is {
			statuses <- e.Response.Status
		}
	}))
	require.EqualValues(t, 404, p.visit(t, s.url("/"))) // a page of the same host may connect
	agreed := "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
	require.Equal(t, []any{agreed, float64(9), true, float64(1000)}, run[[]any](t, p, `async () => {
		const socket = new WebSocket(location.origin.replace("http", "ws") + "/ws");
		socket.binaryType = "arraybuffer";
		const next = kind => new Promise((resolve, reject) => {
			socket.addEventListener(kind, resolve, {once: true});
			socket.addEventListener("error", () => reject(new Error("no connection")), {once: true});
		});
		await next("open");
		let same = 0;
		for (const text of ["", "a", "€".repeat(100), JSON.stringify({name: "Ada", said: "hello ".repeat(50)}), "x".repeat(1 << 20)]) {
			socket.send(text);
			same += (await next("message")).data === text;
		}
		for (const size of [0, 1, 1000, 60_000]) {
			const noise = crypto.getRandomValues(new Uint8Array(size));
			socket.send(noise);
			const echo = new Uint8Array((await next("message")).data);
			same += echo.length === size && echo.every((b, i) => b === noise[i]);
		}
		socket.close(1000);
		const end = await next("close");
		return [socket.extensions, same, end.wasClean, end.code];
	}`))
	require.EqualValues(t, 200, <-statuses, "over HTTP/2 (RFC 8441)")
}
