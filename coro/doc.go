// Package coro writes actions in straight lines. A body is an ordinary function; where it would have to wait
// it is suspended, its task's turn ends, and it goes on in the next one:
//
//	server := &service.TCP{Address: ":7007", Handler: coro.Serve(func(c *coro.Conn) error {
//		_, err := io.Copy(c, c)
//		return err
//	})}
//
// A [Co] is what a body calls to wait: for time, for an action, for a function off the thread, for anything
// that has a waker. A [Conn] is a net.Conn on it, so what speaks a protocol over one (bufio, crypto/tls,
// http.ReadRequest) works, and holds up its own task and nobody else.
//
//	            the body calls                    the task's next turn
//	body ──▶ Read, Sleep, Do, … ──▶ Wait, Yield ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄▶ the call returns ──▶ body
//
// # What it costs
//
// A coroutine is a goroutine of its own that only ever runs in the turns of its task, on the scheduler's
// thread. To go on costs it a switch there and one back, together 150 ns, about as much as the cheapest
// system call; what it does as an action ([Co.Do], and io.Copy between two connections) takes its turns
// without the body and costs what actions cost. At rest it has a stack of 2 KiB, or more if its frames are
// large: a buffer that is a variable of the body lies there. A finished coroutine is used again, so a short
// body does not pay for a new one.
//
// # Rules
//
// A body is code of its scheduler: what it does between two suspensions is one turn, it must not block by any
// other means (a channel, a mutex that is held, a call of the system that sleeps), and what it shares with
// other tasks of the scheduler needs no lock. Its Co is for itself: not for another goroutine, and not for
// another coroutine either. It must not lock its thread (runtime.LockOSThread), which ends the process.
//
// A coroutine is made in the first turn of its action and lives on that thread. While there is any, Run, Step
// and Close on another thread return act.ErrWrongThread; and the goroutine that runs them must not change how
// often it has locked its thread, or the runtime ends the process.
//
// # Locks
//
// A mutex that a coroutine holds while it is suspended blocks the whole thread when another one of the scheduler
// wants it, and then nobody can give it back. A tls.Conn has such: leave it to one coroutine. Where one is to read
// while the other writes, call Handshake before, and see to it that a Write never waits: put a net.Conn whose Write is
// that of [Conn.Under] under the tls.Conn, and before each part of at most 16 KiB wait until Under().Sent() is nil
// (see [Co.Unblock]). Else a peer that does not read, and sends a bad record, stops the scheduler: Read answers with
// an alert, for which it needs the mutex that Write holds.
//
// HandshakeContext with a context that can end closes the connection from a goroutine of its own, which a Conn is not
// for: use Handshake within [Co.WithContext] or [Co.Within].
//
// # Ends
//
// When body returns, the action is Done, or Failed with its error. A panic fails it, with the body's stack; so
// does runtime.Goexit, as a test's FailNow calls it. When the task is dropped, the call that waits returns
// [ErrStopped], and the body should return: its deferred functions run. One more call that would wait returns
// ErrStopped, too; at the second the body is unwound, by runtime.Goexit, so that again its deferred functions
// run and nothing else. A body that goes on computing holds up its thread, which is logged after [Patience].
package coro
