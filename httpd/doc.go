// Package httpd is a server of HTTP/1.1 and HTTP/2: a [Server] makes the actions of connections, a [Handler] answers requests on
// the scheduler's thread, and a [Mux] chooses the handler by method and path.
//
//	hello := func(w *httpd.Response, r *httpd.Request) act.Action {
//		w.Add("Content-Type", "text/plain; charset=utf-8")
//		w.WriteString("Hello, World!")
//		return nil
//	}
//	web := &httpd.Server{Handler: hello}
//	tcp := &service.Listener{Address: "127.0.0.1:8080", Handler: web.Serve}
//	err := act.Run(ctx, act.Config{}, tcp.Setup, monitor.Signals(shutdown.Policy{}))
//
// A handler that can answer at once writes the answer and returns nil; this allocates nothing. A handler that has
// to wait (for a timer, another connection, offloaded work, the rest of the body, or room to write) returns an
// action, which takes turns until it is done. [Response.SwitchProtocols] hands a connection over to another
// protocol, and [Response.Hijack] does so without an answer.
//
// # Strict
//
// Malformed messages that RFC 9112 or RFC 9113 lets a recipient repair are refused here, and no option changes that: if two servers
// disagree about where a message ends, requests can be smuggled, and each repair is a way to disagree. A refusal repeats
// nothing that the client has sent, and with HTTP/1 it is the last response on its connection. Comments quote RFC 9110, 9112 and
// 9113 by section.
//
// # Bounds
//
// A request line has at most 16 KiB (414), a head 64 KiB and 100 fields (431), unless [Server.MaxHead] and MaxFields say
// otherwise, and less if listener.Limits.Read is less. At most 8 empty lines come before it. A chunk's size line has at most 256
// bytes, all extensions of a body 16 KiB, trailers 8 KiB and 100 fields. If the handler does not read the body, at most 256 KiB
// of it are thrown away, and an answer waits at most 500 ms for the end of a body in chunks; beyond that it says Connection:
// close, see [Body]. Pipelined requests are parsed while less than listener.Limits.High of output is queued, and at most 64 in a
// turn. The only bound on a body that is streamed is [Server.MaxBody]; [WithBody] has one of its own. Incomplete heads take at
// most [Server.MaxHeads] bytes of memory, 8 MiB on each scheduler. [Timeouts] bound the rest.
//
// A connection of HTTP/1 between two requests holds a timer and no buffer: less than 384 bytes, including what the packages
// below keep for it. One of HTTP/2 also keeps the table of its decoder, and takes some 1.5 KB.
//
// Package accesslog writes a line for each request. Other logs use [Server.OnResponse].
//
// TLS is a filter of the service: see package secure. For HTTP/2 over TLS the NextProtos of its tls.Config are "h2" and
// "http/1.1". If NextProtos is empty, clients get HTTP/1.1. A client that offers only other names (ALPN) is refused: "http/1.0"
// is for clients such as curl -0.
//
// # HTTP/2
//
// A connection that begins with the preface of HTTP/2 (RFC 9113 3.4) is one of HTTP/2, with and without TLS. Handlers are the
// same. What differs for them:
//
//   - A request is a stream of its connection. An action has a task of its own, so it may compute or offload without the other
//     requests, and its panic or failure ends its stream alone.
//   - [Request.Proto] is "HTTP/2.0". The cookies of a request are one field. A target has no authority.
//   - [Response.SwitchProtocols] answers an extended CONNECT (RFC 8441), which handlers see as a GET. So WebSocket works. Hijack
//     and Lend return an error that is errors.ErrUnsupported, and CONNECT is refused.
//   - Trailers are always sent. [Response.CloseAfter] has the connection end with the requests that it has.
//   - An answer waits at its stream for the window that its client leaves. The other answers of the connection do not.
//
// [Server.MaxStreams] bounds the requests of a connection. On shutdown the client is told in two steps (GOAWAY), so no request
// is lost that was on its way. Floods of frames that cost the client nothing end their connection; docs/limits.md lists them.
//
// There is no push, and Upgrade: h2c is ignored, since RFC 9113 has taken it out. WebSocket is package websocket.
//
// Package client calls other servers, and package gateway passes requests on to them.
package httpd
