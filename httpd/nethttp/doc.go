// Package nethttp runs http.Handlers on a server of package httpd: programs that are written for net/http, or some routes
// of a server whose other handlers are httpd's own. Its [Transport] has an http.Client call on the schedulers.
//
//	err := nethttp.ListenAndServe("127.0.0.1:8080", mux) // in place of http.ListenAndServe
//	server := &nethttp.Server{Handler: mux}              // in place of &http.Server{Handler: mux}
//
// Within a Mux of httpd, an [Adapter] serves some patterns:
//
//	old := &nethttp.Adapter{Handler: mux}
//	web := &httpd.Mux{}
//	web.Handle("GET /hello", hello) // an httpd.Handler
//	web.Handle("/", old.Serve)
//	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: web.Serve}).Serve)
//
// A handler may block: each running request has a goroutine, whatever act.Config.Offloads says. An act.Config.Executor of your
// own needs a method Reserve for that; without it, handlers share its goroutines with everything else. The scheduler parses
// requests and sends small answers. A connection between two requests has no goroutine and no buffer.
//
//	the scheduler's thread                                 a goroutine
//	head ──▶ http.Request ─────────────────────────────▶ ServeHTTP
//	body ──▶ chunks, once the handler reads ───────────▶ Request.Body
//	client ◀── small answers, whole ◀─────────────────── return
//	client ◀──────────────────────── large answers: the goroutine sends by itself
//
// A Write of 16 KiB, and the third piece of a smaller answer that is sent piece by piece, lends the connection to the goroutine
// (see httpd.Response.Lend). From then on the goroutine sends by itself, as with net/http, and a part of a file by sendfile(2),
// or with TLS encrypted. A connection whose filter hides it (see monitor.Stream) cannot be lent: chunks of 16 KiB go to the
// scheduler, two at a time, and a Write of 64 KiB or more, which is not copied, returns when the scheduler has taken all of it.
//
// At most 80 KiB of a body, or 128 KiB of a large one, are on their way to the handler, so a slow handler slows the client down.
//
// A handler that computes holds a processor of the Go runtime (GOMAXPROCS) for 10 ms at a time. While schedulers run, there
// are two processors more than schedulers. When handlers hold all of them, another request waits for a processor three times,
// and with Inline once. A semaphore in the handlers that compute, with a place for each CPU, keeps processors free.
//
// A garbage collection costs more CPU time while schedulers keep all CPUs busy. A server whose handlers allocate much should
// run with a higher GOGC.
//
// A shutdown, such as that of Server.Shutdown, waits for all handlers within its bound, even for handlers whose clients have
// gone. The contexts of requests end when the bound is reached, and not when the shutdown begins. Handlers that have not
// returned by then are counted in the shutdown.Cut, and their calls fail with net.ErrClosed. Their requests stay as they are.
// A handler that streams until its client goes has to learn of the shutdown by other means: Server.RegisterOnShutdown, or
// signal.NotifyContext, as in examples/nethttp. Reads of a hijacked connection return net.ErrClosed once the shutdown has
// begun; writes go on until the handler closes it.
//
// HTTP/2 is served as package httpd says. A [Server] serves it as http.Server does: with TLS, or as its Protocols say. There is
// no http.Pusher.
//
// A [Server] is for a program that has an http.Server: replace the name of the type. An Adapter is for programs that use more of
// Daimon: package program has flags, reloads and upgrades, a service.Listener has filters and bounds, httpd.Server has time-outs
// and MaxBody, and accesslog writes a log.
//
// # What is different
//
// What net/http documents for a Handler, a Request and a ResponseWriter holds here, with these exceptions. A test compares
// the two byte by byte, and reads this list.
//
// Requests:
//
//   - The syntax of requests is strict, as package httpd says, and so is that of chunks and trailers: no request is smuggled past
//     a proxy. net/http repairs some of what is refused here.
//   - A head has at most 64 KiB and 100 fields, and a request line 16 KiB, unless the httpd.Server has other bounds.
//   - Timeouts are there by default, such as 60 s for a body that pauses while the handler reads, and for a client that takes
//     nothing of an answer: see httpd.Timeouts. The buffer of a slow client can be full for that long. Deadlines of
//     http.ResponseController take their place until the handler returns. The zero time means none.
//   - Empty lines before a request are skipped.
//   - A request that ends within its head, since the client has closed its side, gets no answer; with net/http it is 400. The
//     answer to one that ends within its body says close.
//   - A request of HTTP/1.2 is one of HTTP/1.1, even in Request.Proto.
//   - 100 (Continue) is not sent if the body has begun to come.
//   - The connection goes on if a handler reads only a part of a body that came with Expect: 100-continue. net/http closes it.
//   - The errors of a body have other words. Errors that packages io, os and net/http export are the same.
//   - Reading the body and writing the answer never exclude each other: EnableFullDuplex does nothing.
//   - SetReadDeadline has no effect on a request without a body. With net/http its context ends at the deadline.
//   - Close of a body returns nil, even if a Read has failed or would fail: it does not read the rest.
//   - What a handler leaves of a body is thrown away, up to 256 KiB beyond what is on its way to the handler; if there is more,
//     the answer says close. With net/http it is 256 KiB.
//   - An answer that begins before its handler has returned, since it is flushed or has more than 4 KiB, says close if the end of
//     a body in chunks has not come by then. An answer that is complete waits for that end for up to 500 ms. net/http reads on
//     before it answers, however long that takes.
//   - The connection goes on after a body that http.MaxBytesReader has cut. net/http closes it, by an unexported method.
//   - The http.Server of http.ServerContextKey has no fields. It serves nothing.
//
// Answers:
//
//   - Clients of HTTP/1.0 get status lines with HTTP/1.1, Connection: close if the connection ends, and no interim responses,
//     which they do not know.
//   - The reason in a status line is that of RFC 9110; net/http has others for 413, 414, 416 and 422. A status that is not
//     registered has none.
//   - A status is from 100 to 599, as RFC 9110 says: WriteHeader panics with others.
//   - A refusal has a Date, a Content-Length and a text of its own.
//   - An answer to HEAD has a Transfer-Encoding if that to GET has one.
//   - An answer to CONNECT is the last one, and has no length if it is a success (RFC 9110 9.3.6).
//   - Date is the server's, even if a handler has set one or nil.
//   - Transfer-Encoding is the server's. HTTP/1.1 answers without a length are always sent in chunks.
//   - An invalid Content-Length is never sent. net/http sends it where there are no chunks.
//   - Of a handler's Connection only "close" has an effect, in any list. Fields that it names are sent, and it is not.
//   - Upgrade is sent only with 426, and then with Connection: upgrade.
//   - An interim response has no Connection.
//   - Host and Expect, which are fields of requests, are not sent.
//   - 101 is sent by Hijack. Without that the client gets 500, since the connection goes on in HTTP. The head of 101 has no Date
//     but that of the handler.
//   - 205 has no content.
//   - Control characters in fields become spaces.
//   - An answer of up to 4 KiB gets a Content-Length; with net/http it is 2 KiB.
//   - If the content is shorter than the Content-Length that the handler has set, and nothing was sent yet, the client gets 500
//     in place of a part. If it would be longer, the connection goes on, since the answer is whole.
//   - Trailers with http.TrailerPrefix are sent after small answers, too.
//   - A connection that was hijacked is neither a *net.TCPConn nor a *tls.Conn, since it stays with its scheduler.
//   - Bytes that follow a request are not Buffered after Hijack: both the net.Conn and the bufio.Reader on it return them. With
//     net/http, a reader of the net.Conn alone loses bytes that came with the request.
//   - After a panic, and after http.ErrAbortHandler, the client sees a reset in place of a plain end.
//
// With [Adapter].Inline there are more:
//
//   - The answer is sent when the handler has returned: Flush only settles the head. So all answers without trailers have a
//     length, and the client sees nothing of one that is aborted or too short.
//   - The body is received before the handler is called. A client that waits for 100 (Continue) gets it, a bad body is
//     refused, and an unread one does not close the connection. Request.Trailer is complete. A body has at most 4 MiB.
//   - Hijack and deadlines are not supported.
//
// Over HTTP/2 net/http does more in other ways than over HTTP/1. This package does not:
//
//   - An answer has no Content-Length if its status has no content, or if the handler has set an invalid one or a
//     Transfer-Encoding.
//   - Control characters in fields and trailers become spaces, and space around a value goes. net/http leaves such fields
//     out.
//   - Errors that net/http exports are the same as over HTTP/1, such as http.ErrContentLength and http.ErrBodyReadAfterClose.
//   - A ResponseWriter has the same methods. Hijack returns http.ErrNotSupported.
//   - Trailers of a request need not be announced. A request without a body has http.NoBody.
//   - Another expectation than 100-continue is refused with 417.
//
// # Requests to other servers
//
// A [Transport] sends the requests of an http.Client on the schedulers. A request goes to the one with the fewest requests. The
// content of up to 64 KiB of a request with GetBody is read before the request begins, so it can be sent again if its connection
// was lost. Other content and all of the answer is streamed: at most 80 KiB are on their way between the goroutine and the
// scheduler in each direction. Compared with http.Transport there are these differences:
//
//   - Answers have to keep the rules of RFC 9112 and RFC 9113, without the repairs that they allow.
//   - There is no proxy, and CONNECT is not supported. Host names have to be ASCII.
//   - It does not ask for gzip by itself. A request with Accept-Encoding gets the answer as it was sent.
//   - The time-outs of Client.Timeouts are there by default, such as 60 s for the head of an answer.
//   - Of a header's Connection, "close" has an effect, and Upgrade with it. Other fields that it names are sent.
//   - Interim responses are not passed on: no function of an httptrace.ClientTrace is called.
//   - Request.Cancel, which is deprecated, has no effect: the context has.
//   - Response.Status has the registered reason of the status code, and Response.TransferEncoding is empty.
package nethttp
