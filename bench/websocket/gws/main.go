// Command gws is the measured server of github.com/lxzan/gws, with its events, each connection's on a goroutine of its own:
// each message at /ws is sent back.
package main

import (
	"log"
	"net/http"

	"github.com/lxzan/gws"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

type echo struct{ gws.BuiltinEventHandler }

func (echo) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	_ = c.WriteMessage(m.Opcode, m.Bytes()) // gws closes the connection
}

func main() {
	l := goserver.Listen()
	upgrader := gws.NewUpgrader(echo{}, &gws.ServerOption{ReadBufferSize: 1024})
	http.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		if c, err := upgrader.Upgrade(w, r); err == nil {
			go c.ReadLoop() // so that the goroutine of net/http ends, as its README advises
		}
	})
	log.Fatal(http.Serve(l, nil))
}
