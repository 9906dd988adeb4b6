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
// Every program has the flags -addr, -reactors, -cpus, -idle, -max-conns, -memory, -drain, -announce, -spread, -inactivity and -turns;
// -h explains them. A reactor is a scheduler with its monitors, on a thread of its own. What else a program has flags for, and
// links, are its Options:
//
//	server := program.Server{Addr: "127.0.0.1:1883", Options: []program.Option{
//		&proxyproto.Config{},   // -proxy-from
//		&admission.Limiter{},   // -max-per-source, -rate-per-source
//		&secure.TLS{},          // -tls-cert, -tls-key, -tls-self
//		&inspect.Inspector{},   // -inspect, -inspect-token, -inspect-dir
//	}}
//
// An accesslog.Log is one as well. Without its flags an Option does nothing. A program defines flags of its own with package flag,
// or with an [Option] of its own that also checks them.
//
// # Signals
//
// The first SIGINT or SIGTERM ends the program in order: services accept no more connections, and those that are open may go on
// for as long as -drain says. See docs/ending.md. Other flags change that:
//
//   - With -announce the end is only announced at first: the handler httpd.Ready answers 503, so that a load balancer sends no
//     more clients, and all else goes on. It is a part of the time of -drain.
//   - With -spread idle connections end one after the other. This is a part of the time of -drain, too.
//   - With -inactivity the end comes earlier if nothing happens any more.
//   - With -turns each task, such as that of a connection, gets so many more turns, and is cut then.
//
// A line of the log says each second what the end waits for. At the bound each of those that have waited longest, and are cut, has
// a line. A second signal cuts what is left. A third one ends the program at once, also if a turn does not end. Other signals have
// their usual effect, unless a service takes them. With -inspect-dir an Inspector takes SIGUSR1, and writes a file with what has
// just happened.
//
// SIGHUP means reopen and reload. A service that keeps a file open by its name opens it again, and one that has read a file reads
// it again. Each says so in one line of the log. A secure.Files reads its certificate, and an accesslog.Log opens its file, which
// a tool such as logrotate has renamed. What fails stays as it was. Connections go on. A service of your own takes part with
// monitor.OnSignal. The services are called one after the other, and then the function Reload of the [Server], for what the program
// itself has read. Without any of them SIGHUP ends the program, as it does by default.
//
// SIGUSR2 replaces the program by a newer binary without a connection that is refused or reset: see package upgrade. A program
// that is started with listening sockets, as by systemd's socket activation, listens on those that belong to its services.
//
// # Supervisors
//
// If NOTIFY_SOCKET is set, as by systemd for services of Type=notify or notify-reload, the program tells its supervisor how it is
// doing: that it is ready, that it replaces another one (MAINPID), that it reloads and has reloaded. During an end it says each
// second what that waits for, and asks for more time. SIGHUP is then a reload also if nothing is read again. With WatchdogSec= it
// sends a sign of life in half of that time, as long as every scheduler gives turns. See sd_notify(3). A supervisor that cannot be
// reached is a warning in the log.
//
// # Exit statuses
//
//   - 0: an orderly end, even if connections were cut at the drain limit, or by a second signal, which the log counts.
//   - 1: the program cannot start, for example because the address is in use, or cannot go on.
//   - 2: a flag or an argument is wrong.
//   - 128 plus the number of the signal, after a third signal: 130 for Ctrl-C.
//
// With 1 and 2 it prints one sentence to standard error.
package program
