// Package listener has the leaves of the tree of actions: what registers with a monitor and waits there.
//
// A [Conn] is a connection that never blocks. A call that would, returns what it did and an error that
// knows whom to arm; [Next] makes a Directive of any outcome:
//
//	in, err := c.Peek(1)
//	if err != nil {
//		return listener.Next(t, err) // would block: wait; EOF: done; anything else: failed
//	}
//
// [Conn.SendFile] sends a file without its bytes coming here, where the system can.
//
// The other leaves are actions, used by pointer: [Accept] and [Connect] make connections, [Sleep] lets
// time pass, [Receive] takes from a mailbox, [Within] bounds any action in time; and [Line] reads a Conn
// line by line.
//
// Everything belongs to the scheduler's thread. Each leaf says what it does on an order.
package listener
