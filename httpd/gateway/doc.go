// Package gateway passes requests of HTTP on to other servers: a [Gateway] is the handler of an httpd.Server.
//
//	table, err := gateway.NewTable(gateway.Config{
//		Groups: []gateway.Group{{Name: "site", Backends: []gateway.Backend{
//			{Address: "127.0.0.1:8081"}, {Address: "127.0.0.1:8082"},
//		}}},
//		Routes: []gateway.Route{{Group: "site"}}, // any host, any path
//	})
//	…
//	g := &gateway.Gateway{}
//	g.Swap(table)
//	web := &httpd.Server{Handler: g.Serve}
//	server.Run(g, server.Listen(server.Addr, web.Serve))
//
// A [Table] has routes, which choose a group of back ends by the host and the path of a request. [Gateway.Swap] replaces it
// between two requests. The group chooses a back end by its [Policy], among those whose [Health] is good.
//
// If a back end gives no answer, or one with a status of Group.Failures, the request is passed to another one, at most three in
// all. Its method has to be idempotent (RFC 9110 9.2.2), unless no back end has seen it; its content has to be still there, as 16
// KiB of an announced length are; and Group.Retries has to allow it. Otherwise the client gets the answer that there is, 502 if
// there is none, 504 if a time was over, or 503 if no back end has taken the request.
//
// Content is passed on as it comes, in both directions, as fast as the other side takes it. WebSocket goes through, over HTTP/1.1
// and HTTP/2. Fields that concern one connection are left out. X-Forwarded-For, -Proto and -Host, and Via, are added: see
// [Config].
//
// The program examples/gateway reads a Config from a file.
package gateway
