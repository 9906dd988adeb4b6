// Package upgrade replaces a running program by a newer binary; no connection is refused or reset.
//
// A program of package program has it built in: put the new binary in the place of the old one, and send SIGUSR2.
//
//	install web-2 /usr/local/bin/web
//	kill -USR2 $(pidof web)
//
// The old process starts the new binary with the same arguments, and passes on the listening sockets of all services.
// The new one sets up its services on these sockets and says that it is ready. Then the old one asks its services for
// their states, such as the keys of TLS session tickets (secure.Tickets): see [Keeper]. It sends the states, and the
// new one accepts. The old one stops accepting, and shuts down as after a signal: open connections finish the requests
// in flight.
//
// So for a while both processes serve, and they share nothing. If connections share something in the memory of the process, such
// as the subscribers of a topic, see docs/ending.md for the choices.
//
// Until the new process has said that it is ready, and then that it serves, any failure leaves the old one running. If
// the new binary cannot be started, dies, refuses, or is not ready within a minute, it is killed, and one line in the
// log of the old process says why. There is one upgrade at a time, and none while a shutdown is announced or under way.
// If the old process is killed in the middle, the new one takes over, without the states.
//
// The services of both programs are matched by Name, or else by the address they were configured with. A service that
// the new program does not have ends with the old one. The new program logs its sockets, and clients that wait there to
// be accepted are reset. The number of schedulers may differ.
//
// # Socket activation
//
// Listening sockets that systemd passes (LISTEN_FDS, see sd_listen_fds(3)) come to the services in the same way, by
// FileDescriptorName or by address. One socket for several schedulers is shared by all of them. A socket that belongs to no
// service is closed, and logged.
//
// # Limits
//
// The process number changes with each upgrade: a supervisor has to follow it, as systemd does with NotifyAccess=all. Process
// number 1 of a container cannot be replaced, since the container ends with it.
package upgrade
