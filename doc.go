// Package daimon says what is where; it has no code of its own.
//
// Daimon is a framework for non-blocking network servers: one cooperative scheduler for each CPU, on a
// thread of its own, which runs actions round-robin, one turn at a time. Begin with the echo server in
// examples/echo, which is a page, and with ARCHITECTURE.md.
//
// What a server imports:
//
//	act       actions, tasks, wakers, timers, schedulers, groups: the machine that takes turns
//	listener  what an action waits for: connections, time, values
//	service   TCP and Unix sockets, and other sources of tasks
//	monitor   what wakes tasks: the engine under all connections, mailboxes, signals
//	demon     idle strategies; demons that tick or stay
//	future    values that are resolved once
//	shutdown  the data of an orderly end
//
// The test of this directory says which package may import which.
package daimon
