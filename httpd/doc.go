// Package httpd is an HTTP/1.1 server: a [Server] makes the actions of connections, a [Handler] answers requests on the
// scheduler's thread, and a [Mux] chooses the handler by method and path.
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
// Malformed messages that RFC 9112 lets a recipient repair are refused here, and no option changes that: if two servers
// disagree about where a message ends, requests can be smuggled, and each repair is a way to disagree. A refusal is the
// last response on its connection and repeats nothing that the client has sent. Comments quote RFC 9110 and RFC 9112 by
// section.
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
// A connection between two requests holds a timer and no buffer: less than 384 bytes, including what the packages
// below keep for it.
//
// Package accesslog writes a line for each request. Other logs use [Server.OnResponse].
//
// TLS is a filter of the service: see package secure. A client that names its protocols (ALPN) gets a connection if
// NextProtos of the tls.Config is empty or has one of them: "http/1.1", or "http/1.0" with clients such as curl -0.
//
// HTTP/2 is not supported. WebSocket is package websocket.
package httpd
