// Package websocket implements WebSocket (RFC 6455): servers on connections of package httpd, and clients, with TLS or
// without.
//
//	show := func(c *websocket.Conn, r *httpd.Request) act.Action {
//		return act.Func(func(t *act.Task) act.Directive {
//			m, err := c.Receive()
//			if err == nil {
//				fmt.Printf("%s\n", m.Data) // m is lent until the turn ends
//			}
//			return c.Next(t, err) // no message yet: wait; the connection has ended: done
//		})
//	}
//	site := &httpd.Mux{}
//	site.Handle("/ws", (&websocket.Server{Handler: show}).Serve)
//
// A [Server] is a handler of httpd. It answers the handshake, and the action that its Handler makes has the connection from
// then on. A [Client] connects to a server, makes the handshake, and runs the action of its Handler.
//
// On both sides a [Conn] never blocks: Receive lends the next message, Send takes a whole message or nothing, and an error
// that is an act.Blocked says what to wait for. So backpressure is the default, as on a listener.Conn.
//
// A message for many connections is framed once, by [Prepare], and given to each by [Conn.Push]. For a peer that does not
// read, the task that pushes waits, closes the connection, or has the oldest messages dropped.
//
// Messages can be compressed (RFC 7692); see [Options].Compress.
//
// In its package coroutine a connection belongs to a coroutine, whose Read and Write seem to block.
//
// The package itself answers pings, sends pings to silent peers, and makes the close handshake. An idle connection has no
// goroutine and no buffer.
package websocket
