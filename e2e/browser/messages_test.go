package browser

import (
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

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
