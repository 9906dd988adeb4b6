// Package service provides services: demons (background actions) that spawn a task for each connection that arrives, or
// for anything else.
//
// [Listener] listens on every scheduler of a Group and spawns a task for each connection. Its method Setup is a set-up
// function for act.Run. [New] makes a service of any other source of tasks. Package program makes Listeners from flags.
//
//	server := &service.Listener{Address: "127.0.0.1:7007", Handler: echo}
//	err := act.Run(ctx, act.Config{}, server.Setup, monitor.Signals(shutdown.Policy{}))
//
// [PacketListener] receives datagrams, of UDP and Unix sockets. It gives them in batches to a handler, or keeps a conversation
// with each peer, which has a task like a connection's: see [Peers].
//
// In tests with the race detector, connections synchronize as with package net: if a handler sets a variable and then
// writes to the connection, the test may read the variable after it has received the bytes. The end of a connection does
// not synchronize.
package service
