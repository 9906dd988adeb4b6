// Package program is the main function of a server: flags, signals and exit statuses.
//
// A server on one address is one call:
//
//	func main() {
//		web := &httpd.Server{Handler: hello}
//		program.Serve("127.0.0.1:8080", web.Serve)
//	}
//
// A [Server] is for programs with flags of their own, several addresses, or other services:
//
//	func main() {
//		to := flag.String("to", "127.0.0.1:7007", "the `address` to forward to")
//		server := program.Server{Addr: "127.0.0.1:7009"}
//		server.Parse()
//		server.Run(server.Listen(server.Addr, proxy.To(*to)))
//	}
//
// # Flags
//
// Every program has the flags -addr, -reactors, -cpus, -engine, -idle, -max-conns, -memory, -drain, -announce, -spread, -inactivity
// and -turns; -h explains them. A reactor is a scheduler with its monitors, on a thread of its own. Parts of a program that have
// further flags are its Options; only these are linked:
//
//	server := program.Server{Addr: "127.0.0.1:1883", Options: []program.Option{
//		&proxyproto.Config{},   // -proxy-from
//		&admission.Limiter{},   // -max-per-source, -rate-per-source
//		&secure.TLS{},          // -tls-cert, -tls-key, -tls-self
//		&inspect.Inspector{},   // -inspect, -inspect-token, -inspect-dir
//	}}
//
// An accesslog.Log is an [Option] as well. Without its flags an Option does nothing. A program defines flags of its own with
// package flag, or with an Option of its own, which also checks them.
//
// # Signals
//
// The first SIGINT or SIGTERM shuts the program down gracefully: services accept no more connections, and open connections may
// go on for as long as -drain says. See docs/ending.md. Other flags change that:
//
//   - With -announce the shutdown is only announced at first (lame duck): the handler httpd.Ready answers 503, so that a load
//     balancer sends no more clients, and everything else goes on. The time of -drain includes it.
//   - With -spread idle connections are closed one after the other (staggered drain). The time of -drain includes it, too.
//   - With -inactivity the program ends earlier if nothing happens any more.
//   - With -turns each task, such as a connection's, gets that many more turns, and is then cut off.
//
// Each second a line of the log says what the shutdown waits for. At the bound, the tasks that have waited longest are logged, a
// line for each, when they are cut off. A second signal cuts off what is still open. A third one ends the program at once, even
// if a turn does not end. Other signals have their usual effect, unless a service takes them. With -inspect-dir an Inspector
// takes SIGUSR1, and writes a file with the latest events.
//
// SIGHUP means reopen and reload. A service that keeps a file open by its name opens it again, and one that has read a file reads
// it again. Each logs that in one line. A secure.Files reads its certificate, and an accesslog.Log opens its file, which a tool
// such as logrotate has renamed. A service that fails to reload goes on with what it had. Connections go on. A service of your
// own takes part with monitor.OnSignal. The services are called one after the other, and then the function Reload of the
// [Server], which reads the program's own files again. Without any of them SIGHUP ends the program, as it does by default.
//
// SIGUSR2 replaces the program by a newer binary without a connection that is refused or reset: see package upgrade. A program
// that is started with listening sockets, as by systemd's socket activation, listens on the ones that belong to its services.
//
// # Supervisors
//
// If NOTIFY_SOCKET is set, as by systemd for services of Type=notify or notify-reload, the program tells its supervisor how it is
// doing: that it is ready, that it replaces another one (MAINPID), that it reloads and has reloaded. During a shutdown it says
// each second what the shutdown waits for, and asks for more time. SIGHUP is then a reload even if nothing is read again. With
// WatchdogSec= it sends a sign of life in half of that time, as long as every scheduler gives turns. See sd_notify(3). A
// supervisor that cannot be reached is a warning in the log.
//
// # Exit statuses
//
//   - 0: a graceful shutdown, even if connections were cut off at the drain limit or by a second signal; the log says how many.
//   - 1: the program cannot start, for example because the address is in use, or cannot go on.
//   - 2: a flag or an argument is wrong.
//   - 128 plus the number of the signal, after a third signal: 130 for Ctrl-C.
//
// With 1 and 2 it prints one sentence to standard error.
package program
