// Package coroutine serves a WebSocket connection with a coroutine of package coro: calls seem to block, and only the
// connection's own task waits.
//
//	talk := func(c *coroutine.Conn) error {
//		for {
//			m, err := c.Read()
//			if err != nil {
//				return err // the connection has ended
//			}
//			if err := c.Write(m.Type, m.Data); err != nil {
//				return err
//			}
//		}
//	}
//	server := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
//		return coroutine.New(c, talk)
//	}}
//
// A coroutine that needs a connection to a server runs the action of a [websocket.Client]: co.Do(client.Dial()) returns when that
// connection has ended.
//
// An idle connection holds the stack of its coroutine, 2 KiB or more; with an action of package websocket it has none.
package coroutine
