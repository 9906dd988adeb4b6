// Package gateway passes requests of HTTP on to other servers: a [Gateway] is the handler of an httpd.Server.
//
//	table, err := gateway.NewTable(gateway.Config{
//		Groups: []gateway.Group{{Name: "site", Backends: []gateway.Backend{{Address: "127.0.0.1:8081"}, {Address: "127.0.0.1:8082"}}}},
//		Routes: []gateway.Route{{Group: "site"}},
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
// A request that a back end has not answered, or with a status of Group.Failures, is passed to another one: if its method is
// idempotent or no back end has seen it, its content is at most 16 KiB, at most three have been tried, and Group.Retries allows
// it. Otherwise the client gets 502 if there was no answer, 504 if it took too long, and 503 if no back end could take the
// request.
//
// Fields that concern one connection are left out. X-Forwarded-For, -Proto and -Host, and Via, are added: see [Config].
//
// The program examples/gateway reads a Config from a file.
package gateway
