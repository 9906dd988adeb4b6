// Package listener has connections, and the actions that wait for something: the leaves of a tree of actions.
//
// A [Conn] is a connection that never blocks. A call that would have to wait returns what it did and an [act.Blocked], and
// [Next] turns any error into a Directive, arming what has to wake the task:
//
//	in, err := c.Peek(1)
//	if err != nil {
//		return listener.Next(t, err) // would block: wait; EOF: done; anything else: failed
//	}
//
// [Conn.SendFile] sends a file without its bytes passing through this process, where the system can. [Line] reads a
// Conn line by line, and [Frame] message by message, each with its length in front.
//
// The leaves are actions, used by pointer: [Accept] and [Connect] make connections, [Sleep] waits for a time, [Receive]
// takes a value from a [Mailbox], and [Ready] waits for a descriptor. [Reconnect] keeps up a connection that is dialled. [Within] bounds any action in time. A
// [Filter] prepares a connection before its handler. A [Bridge] gives a connection to code that blocks, or that has
// goroutines of its own.
//
// Everything belongs to the scheduler's thread. Each leaf documents what it does on an order.
package listener
