// Package httpd is HTTP/1.1 on the reactor: a [Server] makes the actions of connections, a [Handler] answers requests
// on the scheduler's thread, and a [Mux] finds the handler.
//
//	hello := func(w *httpd.Response, r *httpd.Request) act.Action {
//		w.Add("Content-Type", "text/plain; charset=utf-8")
//		w.WriteString("Hello, World!")
//		return nil
//	}
//	web := &httpd.Server{Handler: hello}
//	tcp := &service.TCP{Address: "127.0.0.1:8080", Handler: web.Serve}
//	err := act.Run(ctx, act.Config{}, tcp.Setup, monitor.Signals(shutdown.Policy{}))
//
// A handler that has its answer at hand writes it and returns nil; nothing is allocated then. One that has to wait, for
// a timer, another connection, offloaded work, the rest of the body or room to write, returns an action, which takes
// turns until it is done.
//
// # How a request goes through
//
//	octets ──▶ head (line by line, in place) ──▶ framing (none, a length, chunks, or a refusal)
//	                                                │
//	        Handler(w, r) ◀── session (one after the other, in order) ──▶ what is left of the body is thrown away
//	            │
//	            ▼
//	        Response (gathered: Content-Length; else announced, or chunks) ──▶ listener.Conn
//
// # Strict
//
// What RFC 9112 lets a recipient repair is refused here, and there are no switches: each lenience of a server is a way
// for two of them to disagree about where a message ends, and that is how requests are smuggled. A refusal is the last
// response on its connection and repeats nothing of what the client has sent. Rules are quoted by their sections of RFC
// 9110 and RFC 9112.
//
// # Bounds
//
// A request line has at most 16 KiB (414), a head 64 KiB and 100 fields (431), with at most 8 empty lines before it;
// less if listener.Limits.Read is less. A chunk's size line has 256 bytes, all extensions of a body
// 16 KiB, trailers 8 KiB and 100 fields. Of a body that the handler does not want 256 KiB are thrown away; behind more
// the connection is closed. Pipelined requests are parsed while less than listener.Limits.High of output is queued, and
// 64 in a turn. [Timeouts] bound the rest. There is no bound on a body that is streamed; [WithBody] has one.
//
// A connection at rest holds a timer and no buffer, less than 384 bytes with all that the packages below keep for it.
//
// It knows nothing of TLS, of net/http and of WebSocket; those are meant to come as packages of their own.
package httpd
