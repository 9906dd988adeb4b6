package main

import (
	"embed"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/files"
	"github.com/daimon-go/daimon/httpd/websocket"
)

const (
	// maxMessage bounds a message of a page. A line that is too long, but not absurdly so, gets an answer.
	maxMessage = 16 << 10
	// farewell is how long the end of the chat waits for a page that does not read.
	farewell = time.Second
)

//go:embed page
var embedded embed.FS

// policy lets the page load and do only what is its own: no script or style in the text, nothing from elsewhere, and no
// other page around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'%s; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Site is the handler of the web server: it has the page, and the members' connections of WebSocket at /ws. A page from
// elsewhere may not connect, but that of a peer.
func (c *Chat) Site() httpd.Handler {
	root, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err)
	}
	page := &files.Server{FS: root}
	sockets := &websocket.Server{Handler: c.visitor, Options: websocket.Options{
		MaxMessage:   maxMessage,
		Backlog:      -1, // messages for a member wait in its subscription
		CloseTimeout: farewell,
	}}
	allowed := strings.Builder{}
	for _, peer := range c.peers {
		allowed.WriteString(" ws://" + peer + " wss://" + peer)
	}
	if len(c.peers) > 0 {
		sockets.Origin = c.isOurs
	}
	policy := fmt.Sprintf(policy, allowed.String())
	site := &httpd.Mux{}
	site.Handle("/ws", sockets.Serve)
	site.Handle("/{path...}", func(w *httpd.Response, r *httpd.Request) act.Action {
		w.Add("Content-Security-Policy", policy)
		w.Add("Referrer-Policy", "no-referrer")
		w.Add("Cache-Control", "max-age=60") // browsers ask for the icon each time the address changes
		return page.Serve(w, r)
	})
	return site.Serve
}

// isOurs reports whether a page is of this process or of one of its peers. Clients that are not browsers send no Origin.
func (c *Chat) isOurs(r *httpd.Request) bool {
	origin := string(r.Header("Origin"))
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host != "" && (u.Host == string(r.Host()) || slices.Contains(c.peers, u.Host))
}

// visitor is the action of a page's connection.
func (c *Chat) visitor(conn *websocket.Conn, _ *httpd.Request) act.Action {
	return &member{chat: c, wire: &page{conn}}
}
