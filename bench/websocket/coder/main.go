// Command coder is the measured server of github.com/coder/websocket: each message at /ws is sent back.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/coder/websocket"

	"github.com/daimon-go/daimon/bench/internal/goserver"
)

func main() {
	l := goserver.Listen()
	http.HandleFunc("/ws", echo)
	log.Fatal(http.Serve(l, nil))
}

func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has been answered
	}
	defer c.CloseNow()
	for ctx := context.Background(); ; {
		kind, message, err := c.Read(ctx)
		if err != nil {
			return
		}
		if err := c.Write(ctx, kind, message); err != nil {
			return
		}
	}
}
