package coroutine_test

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/coroutine"
	"github.com/daimon-go/daimon/program"
)

// A server that sends each message back, in straight lines. It greets with the name of the query: ws://127.0.0.1:8080/?Ann.
func ExampleNew() {
	join := func(c *websocket.Conn, r *httpd.Request) act.Action {
		name := string(r.Query()) // the request is only there during this call
		return coroutine.New(c, func(c *coroutine.Conn) error {
			if err := c.Write(websocket.Text, []byte("hello, "+name)); err != nil {
				return err
			}
			for {
				m, err := c.Read()
				if err != nil {
					return err // the connection has ended
				}
				if err := c.Write(m.Type, m.Data); err != nil {
					return err
				}
			}
		})
	}
	sockets := &websocket.Server{Handler: join}
	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: sockets.Serve}).Serve)
}
