// Package program is the main function of a server: its flags, its signals and its exit status.
//
// For a server on one address that is one call:
//
//	func main() {
//		web := &httpd.Server{Handler: hello}
//		program.Serve("127.0.0.1:8080", web.Serve)
//	}
//
// A [Server] is for programs with flags of their own, several addresses, or services of their own.
//
// # Flags
//
// Every program has the flags of a [Server]: -addr, -reactors, -idle, -max-conns and -drain; -h lists them. A
// reactor is a scheduler with its monitors, on a thread of its own. Further flags come from package flag.
//
// # Signals
//
// The first SIGINT or SIGTERM ends the program in order, within the time that -drain says: services accept no
// more, and open connections are finished. A second one ends it at once.
//
// # Exit status
//
//	0                        an orderly end, also when connections were cut at the drain limit; the log counts them
//	1                        it cannot start, such as on an address in use, or cannot go on
//	2                        a flag or an argument is not understood
//	128 + the signal's number   a second signal: 130 for Ctrl-C
//
// With 1 and 2 it prints one sentence to standard error.
package program
