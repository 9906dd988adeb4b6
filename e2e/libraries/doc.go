// Package libraries tests that code which knows nothing of Daimon works on it, unchanged.
//
// Libraries with goroutines of their own work over a listener.Bridge: golang.org/x/crypto/ssh, with OpenSSH's client, and the
// tests of golang.org/x/net/nettest for any net.Conn.
//
// Handlers of net/http work on httpd/nethttp as on net/http's own server, which the same tests ask first: the page
// of a Prometheus client, and the reverse proxy of the standard library.
//
// Clients of WebSocket that others have written talk to the example websocket-echo: github.com/coder/websocket and
// github.com/gorilla/websocket. The client of httpd/websocket talks to servers that are made of the same libraries, on net/http
// and on httpd/nethttp.
//
// Headers of the PROXY protocol are read and sent as github.com/pires/go-proxyproto reads and sends them.
//
// It is a module of its own, so that the library does not depend on them.
package libraries
