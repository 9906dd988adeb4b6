package websocket_test

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/program"
)

// A server at ws://127.0.0.1:8080/last-digit answers each message with the last digit of its length. An answer for which
// there is no room is lost; the example websocket-echo keeps it.
func ExampleServer() {
	count := func(c *websocket.Conn, _ *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			m, err := c.Receive()
			if err == nil && len(m.Data) > 1000 {
				c.Close(1009, "that is a long one")
			} else if err == nil {
				err = c.Send(websocket.Text, []byte{'0' + byte(len(m.Data)%10)})
			}
			return c.Next(t, err)
		})
	}
	site := &httpd.Mux{}
	site.Handle("/last-digit", (&websocket.Server{Handler: count}).Serve)
	program.Serve("127.0.0.1:8080", (&httpd.Server{Handler: site.Serve}).Serve)
}
