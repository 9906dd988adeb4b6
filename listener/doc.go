// Package listener provides connections that never block, and leaves: actions that wait for something, at the bottom of a
// tree of actions. It does not listen; package service accepts connections.
//
// A [Conn] is a connection that never blocks. A call that would have to wait returns how much it did and an
// [act.Blocked]. [Next] turns any error into an [act.Directive], and arms what will wake the task:
//
//	in, err := c.Peek(1)
//	if err != nil {
//		return listener.Next(t, err) // would block: wait; EOF: done; anything else: failed
//	}
//
// [Conn.SendFile] sends a file without copying its bytes through the program, where the kernel can. [Line] reads a Conn
// line by line. [Frame] reads length-prefixed messages.
//
// A [PacketConn] is a socket for datagrams, and a [Peer] is one end of a conversation by them, which [DialPackets] begins.
//
// The leaves are actions, used by pointer: [Connect] dials, [Sleep] waits for a time, [Receive] takes a value from a
// [Mailbox], [Ready] waits for a descriptor, and [Query] asks one question by datagrams. [Reconnect] dials again whenever
// its connection ends. [Within] bounds any action in time. A [Filter] prepares a connection before its handler. A [Bridge]
// gives a connection to code that blocks, or that starts goroutines.
//
// Everything is for the scheduler's thread, except where "any goroutine" is said. Each leaf documents what it does when
// shutdown begins.
package listener
