// Package libraries tests that code which knows nothing of Daimon works on it, unchanged.
//
// Libraries with goroutines of their own work over a listener.Bridge: golang.org/x/crypto/ssh, with OpenSSH's client, and the
// tests of golang.org/x/net/nettest for any net.Conn.
//
// A client of WebSocket that others have written, github.com/coder/websocket, talks to the example websocket-echo. The client of
// httpd/websocket talks to a server that is made of the same library, on net/http and on httpd/nethttp.
//
// The conformance runner of connect tests its reference server, by gRPC, gRPC-Web and Connect, on httpd/nethttp. The cases of
// grpc-go's client for the interoperability of gRPC pass on the method ServeHTTP of grpc-go's server, on net/http and on
// httpd/nethttp.
//
// The schedules of github.com/netresearch/go-cron are schedules of periodic tasks of package stage.
//
// It is a module of its own, so that the library does not depend on them.
package libraries
