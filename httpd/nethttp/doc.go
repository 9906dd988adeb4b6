// Package nethttp serves http.Handlers: programs that are written for net/http run on a server of package httpd, beside its
// own handlers.
//
//	err := nethttp.ListenAndServe("127.0.0.1:8080", mux) // in place of http.ListenAndServe
//
// Within a Mux of httpd, an [Adapter] serves some patterns:
//
//	old := &nethttp.Adapter{Handler: mux}
//	web := &httpd.Mux{}
//	web.Handle("GET /hello", hello) // an httpd.Handler
//	web.Handle("/", old.Serve)
//	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: web.Serve}).Serve)
//
// A handler may block: each running request has a goroutine, whatever act.Config.Offloads says. An act.Config.Executor of
// one's own has to have a method Reserve for that; otherwise handlers share its goroutines with everything else. The scheduler parses requests and sends answers. A connection
// between two requests has no goroutine and no buffer.
//
//	the scheduler's thread                                 a goroutine
//	head ──▶ http.Request ─────────────────────────────▶ ServeHTTP
//	body ──▶ chunks, once the handler reads ───────────▶ Request.Body
//	client ◀── chunks, of more than 4 KiB or flushed ◀── ResponseWriter
//	client ◀── small answers, whole ◀─────────────────── return
//
// A chunk has up to 16 KiB. At most two of an answer and five of a body are on their way, so a slow client holds up the
// handler, and a slow handler the client. A body with a Content-Length comes in chunks of up to 64 KiB, while as much is still
// to come. A Write of 64 KiB or more is not copied: it returns when the scheduler has taken all of it. So content that is at
// hand is best written at once, with its Content-Length.
//
// An order to end waits for all handlers within its bound, also for those whose clients have gone. Contexts of requests do
// not end with the order, but when its bound is reached. Handlers that have not returned then are counted in the
// shutdown.Cut, and their calls fail with net.ErrClosed. Their requests stay as they are. A handler that streams until its
// client goes has to learn of the order otherwise: examples/nethttp does so by signal.NotifyContext. Reads of a hijacked
// connection return net.ErrClosed from the order on; writes go on until the handler closes it.
//
// # In place of http.Server
//
// The fields of an http.Server do nothing here. These have similar effects:
//
//   - ReadHeaderTimeout, IdleTimeout: httpd.Timeouts.Head and Idle.
//   - ReadTimeout, WriteTimeout: httpd.Timeouts.Body and Write. They bound how long a client may be slow, not the whole time.
//     The deadlines of http.ResponseController take their place until the handler returns; the zero time means none.
//   - MaxHeaderBytes: a head has at most 64 KiB and 100 fields. httpd.Server.MaxBody bounds bodies.
//   - TLSConfig: that of secure.Server, which is a filter of the service.
//   - ErrorLog: act.Config.Logger. A log of requests: package accesslog, or a handler around the others.
//   - Shutdown and RegisterOnShutdown: the context of act.Run, or a signal; shutdown.Policy has the bound.
//   - BaseContext, ConnContext, ConnState: nothing.
//
// # What is different
//
// What net/http documents of a Handler, a Request and a ResponseWriter holds here, but for this:
//
//   - There is no HTTP/2, and so no http.Pusher.
//   - The syntax of requests is strict, as package httpd says, so that nothing is smuggled past a proxy. CONNECT is refused.
//     Limits and timeouts are there by default: a body that pauses for 60 s while the handler reads is given up.
//   - Date, Connection and Transfer-Encoding are the server's, since it frames the answers. Of a handler's Connection only
//     "close" has an effect, in any list. Upgrade is sent only with 426, and no invalid Content-Length. HTTP/1.1 answers
//     without a length are always sent in chunks.
//   - The status must be from 100 to 599, as RFC 9110 says. 205 has no content. Control characters in fields become spaces.
//   - 101 is sent by Hijack. Without that the client gets 500, since the connection goes on in HTTP.
//   - An answer of up to 4 KiB gets a Content-Length; with net/http it is 2 KiB. If the content is shorter than the
//     Content-Length that the handler has set, and nothing was sent yet, the client gets 500 in place of a part. If it
//     was to be longer, the connection goes on, since the answer is whole.
//   - Trailers with http.TrailerPrefix are sent behind small answers, too.
//   - Clients of HTTP/1.0 get no interim responses, which they do not know. 100 (Continue) is not sent if the body has begun
//     to come.
//   - A request to HEAD is answered when the handler returns.
//   - Reading the body and writing the answer never exclude each other: EnableFullDuplex does nothing.
//   - Close of a body returns nil, also if a Read has failed or would fail: it does not read what is left.
//   - http.MaxBytesReader cannot have the connection closed, which net/http arranges by an unexported method. What is left
//     of a body is thrown away, up to 256 KiB; if there is more, the answer says close.
//   - An answer that begins before its handler has returned, since it is flushed or has more than 4 KiB, says close if the end of
//     a body in chunks has not come by then. An answer that is complete waits for that end for up to 500 ms. net/http reads on
//     before it answers, however long that takes.
//   - A connection that was hijacked is no *net.TCPConn, since it stays with its scheduler.
//   - After a panic, and after http.ErrAbortHandler, the client sees a reset in place of a plain end.
package nethttp
