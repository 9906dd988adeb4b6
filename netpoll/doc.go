// Package netpoll wraps epoll and kqueue, and non-blocking socket calls.
//
// It deals with descriptors and bytes, not with tasks, buffers or connections, and makes no decisions. A [Poller]
// watches descriptors, each registered once and edge-triggered, and reports them by a tag of the caller's. [System] is
// the set of socket calls; a simulated network can replace it with the same methods.
//
// Descriptors are numbers that the caller owns: it closes them, once, and not while another goroutine uses them, since
// the kernel reuses the number. The first Poller of a program makes the Go runtime open its own poller as well, which
// takes descriptors; otherwise the runtime does so with its first timer, and ends the program if it gets none.
//
// Edge-triggered means that an event is reported when something changes, not while it stays so. After an [In] a caller
// receives until EAGAIN before it waits for the next In, or remembers that it has not. A report has all conditions that
// hold at its time, not only new ones: on Linux arriving bytes are reported as In|Out while there is room to send.
//
// When does In end? The rule, which a test compares with poll(2):
//
//   - EAGAIN with [Priority] set clears Priority: receive again. On Linux a receive that begins at the mark of
//     out-of-band data returns EAGAIN if a signal is pending (tcp_recvmsg_locked), whatever follows the mark, and the
//     Go runtime sends many signals. The second call returns it only if another signal arrives within the call.
//   - EAGAIN without Priority clears In.
//   - A short read clears In on TCP, unless Priority, [Partial] or [PeerClosed] is set: a receive stops at the mark,
//     with more after it, and the end of the stream, which no second edge reports, is still to be received. On Unix
//     sockets a short read clears nothing: ancillary data splits reads.
//
// Mechanisms: epoll on Linux (4.5 or later, for EPOLLEXCLUSIVE), kqueue on Darwin and the BSDs. Elsewhere the package
// compiles, and everything in it fails with an error that says that the operating system is not supported.
//
// On Linux the calls that return at once on a non-blocking descriptor go to the kernel without the bookkeeping that the
// runtime does for calls that may sleep. A send of a file may sleep, so it goes through the runtime.
//
// For the race detector, sends and receives synchronize as in package net: a goroutine's actions before it sends happen
// before another goroutine's actions after it has received. As there, Accept, connecting and the end of a stream do not
// synchronize. Of datagrams this holds on Linux only.
package netpoll
