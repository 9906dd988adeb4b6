package main

import (
	"net/http"
	"sync"

	"github.com/gorilla/websocket"
)

// hub knows all clients of /broadcast. Two goroutines belong to each: one reads, one writes.
type hub struct {
	clients    map[*client]bool
	messages   chan *websocket.PreparedMessage
	register   chan *client
	unregister chan *client
	handshakes sync.RWMutex // held from before the answer to one until the client is registered
}

type client struct {
	conn *websocket.Conn
	send chan *websocket.PreparedMessage
}

// queued is how many messages may wait for a client.
const queued = 256

func newHub() *hub {
	return &hub{clients: map[*client]bool{}, messages: make(chan *websocket.PreparedMessage),
		register: make(chan *client), unregister: make(chan *client)}
}

func (h *hub) run() {
	for {
		select {
		case c := <-h.register:
			h.clients[c] = true
		case c := <-h.unregister:
			h.drop(c)
		case m := <-h.messages:
			for c := range h.clients {
				select {
				case c.send <- m:
				default:
					h.drop(c)
				}
			}
		}
	}
}

func (h *hub) drop(c *client) {
	if h.clients[c] {
		delete(h.clients, c)
		close(c.send)
	}
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	h.handshakes.RLock()
	defer h.handshakes.RUnlock()
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has been answered
	}
	c := &client{conn: conn, send: make(chan *websocket.PreparedMessage, queued)}
	h.register <- c
	go c.write()
	go c.read(h)
}

func (c *client) read(h *hub) {
	defer func() { h.unregister <- c }()
	for {
		kind, message, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		m, err := websocket.NewPreparedMessage(kind, message)
		if err != nil {
			return
		}
		h.handshakes.Lock() // a client that has its answer gets what is said from there on
		h.messages <- m
		h.handshakes.Unlock()
	}
}

func (c *client) write() {
	defer c.conn.Close()
	for m := range c.send {
		if c.conn.WritePreparedMessage(m) != nil {
			return
		}
	}
}
