// Package daimon is the front page of Daimon, a framework for network servers that hold many connections. It has no code; import
// the packages below.
//
// Each CPU runs one cooperative scheduler on a thread of its own. A scheduler runs small tasks in turns, and wakes a task when its
// connection, its timer or another task has something for it. This is a whole server, with flags, signals and a graceful shutdown:
//
//	func main() {
//		web := &httpd.Server{Handler: hello}
//		program.Serve("127.0.0.1:8080", web.Serve)
//	}
//
//	func hello(w *httpd.Response, r *httpd.Request) act.Action {
//		w.Add("Content-Type", "text/plain; charset=utf-8")
//		w.WriteString("Hello, World!\n")
//		return nil
//	}
//
// To start with:
//
//	program          the main function of a server: flags, signals, exit status
//	httpd            a server of HTTP/1.1 and HTTP/2, with routes
//	httpd/nethttp    http.Handlers and http.Clients, unchanged
//	listener         connections, and the other things that an action waits for
//	coro             coroutines, and connections whose calls seem to block
//	act              actions, tasks, timers, schedulers, groups
//
// Protocols:
//
//	httpd/client     calls to servers of HTTP/1.1 and HTTP/2
//	httpd/gateway    requests of HTTP passed on to back ends
//	httpd/websocket  WebSocket servers and clients; httpd/websocket/coroutine for straight-line code
//	httpd/files      files over HTTP
//	httpd/accesslog  a line in a log for each request
//	secure           TLS for accepted and dialled connections
//	proxyproto       the PROXY protocol, read and sent
//	admission        limits for each client address
//
// State and jobs:
//
//	process          actors with bounded, typed mailboxes
//	topic            publish and subscribe
//	stage            jobs in stages that survive crashes
//	stage/store      what a database has to do for package stage
//	stage/memory     a store in memory; stage/sqlite and stage/postgres are modules of their own
//	stage/storetest  tests for stores
//	future           values that are resolved once
//	tasklet          work in phases, on the scheduler's thread and on others
//
// Operating and testing:
//
//	inspect          what a server is doing: a page, text, JSON and metrics
//	upgrade          a newer binary takes over the sockets; socket activation
//	shutdown         how a server ends, and what was left
//	sim              simulated worlds for whole servers, each from one seed
//
// Under the hood:
//
//	service          listening sockets, and other sources of tasks
//	monitor          event sources: the engine below all connections, watched descriptors, signals
//	demon            idle strategies, and actions that tick
//	netpoll          epoll, kqueue and non-blocking socket calls
//
// README.md has figures and comparisons, docs/README.md is the index of the documents, and ARCHITECTURE.md is a page for people who
// read the source.
package daimon
