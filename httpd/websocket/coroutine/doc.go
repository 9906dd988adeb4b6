// Package coroutine lets a coroutine of package coro have a connection of WebSocket: its calls seem to block, and only its
// own task waits.
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
// A coroutine that needs a connection to a server runs the action of a [websocket.Client], whose Handler is of the same kind:
// co.Do(client.Dial()) returns when that connection has ended.
//
// An idle connection holds the stack of its coroutine, 2 KiB or more. With an action it has none: see package websocket. It is
// a package of its own, so that a server without coroutines does not link them.
package coroutine
