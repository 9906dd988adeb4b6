// Package service has services: demons that make a task of each connection that arrives, or of anything else.
//
// [TCP] and [Unix] listen on every scheduler of a Group and make a task of each connection; their Setup
// is a set-up function for act.Run. [New] makes a service of any source of tasks.
//
//	server := &service.TCP{Address: "127.0.0.1:7007", Handler: echo}
//	err := act.Run(ctx, act.Config{}, server.Setup, monitor.Signals(shutdown.Policy{}))
//
// For the race detector it is as with package net: a test may read what a handler has set before it wrote, once the test
// has received that. The end of a connection alone orders nothing.
package service
