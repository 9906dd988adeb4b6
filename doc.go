// Package daimon has no code of its own; it says where to find what.
//
// Daimon is a framework for non-blocking network servers. It runs one cooperative scheduler for each CPU, on a thread
// of its own. A scheduler runs actions round-robin, one turn at a time. README.md begins with a complete server;
// ARCHITECTURE.md explains how the packages fit together.
//
// A web server imports three packages:
//
//	program   the main function of a server: flags, signals, exit status
//	httpd     an HTTP/1.1 server
//	act       actions, tasks, wakers, timers, schedulers, groups: the machine that takes turns
//
// Others are for connections without HTTP, and for other forms of work:
//
//	listener  what an action waits for: connections, time, values
//	service   TCP and Unix sockets, and other sources of tasks
//	coro      coroutines, and connections whose calls seem to block
//	tasklet   work in phases, on the scheduler's thread and off it
//	process   lightweight actors with bounded, typed mailboxes
//	future    values that are resolved once
//	stage     background work in stages that survive crashes
//	monitor   what wakes tasks: the engine under all connections, other descriptors, signals
//	netpoll   epoll, kqueue, and non-blocking socket calls
//	demon     idle strategies, and actions that tick
//	shutdown  orders to end, their terms, and what was cut
//	sim       a simulated world for whole servers
//
// A test in this directory lists what each package may import.
package daimon
