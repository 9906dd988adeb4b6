// Command gorilla is the measured server of github.com/gorilla/websocket, by its documentation: buffers of about the size of
// the messages, and a pool of those for writing. /ws sends each message back; /broadcast sends it to all connections there,
// by the hub of its example chat, as a PreparedMessage.
package main

import (
	"log"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

var upgrader = websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 1024, WriteBufferPool: &sync.Pool{}}

func main() {
	l := goserver.Listen()
	h := newHub()
	go h.run()
	http.HandleFunc("/ws", echo)
	http.HandleFunc("/broadcast", h.serve)
	log.Fatal(http.Serve(l, nil))
}

func echo(w http.ResponseWriter, r *http.Request) {
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has been answered
	}
	defer c.Close()
	for {
		kind, message, err := c.ReadMessage()
		if err != nil {
			return
		}
		if err := c.WriteMessage(kind, message); err != nil {
			return
		}
	}
}
