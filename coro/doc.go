// Package coro implements coroutines on a scheduler: actions that read like blocking code. The body of a coroutine is
// an ordinary function. Where it would have to wait, it is suspended, its task's turn ends, and it goes on in a later
// turn:
//
//	server := &service.Listener{Address: ":7007", Handler: coro.Serve(func(c *coro.Conn) error {
//		_, err := io.Copy(c, c)
//		return err
//	})}
//
// The methods of [Co] wait: for a time, for an action, for a function on another goroutine, for anything that can wake
// a task. A [Conn] is a net.Conn whose calls make only its own task wait. A library can use it if it calls it in the
// coroutines of that task: see "Libraries" below.
//
//	            the body calls                    the task's next turn
//	body ──▶ Read, Sleep, Do, … ──▶ Wait, Yield ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄▶ the call returns ──▶ body
//
// # Cost
//
// A coroutine is a goroutine that runs only in the turns of its task, on the scheduler's thread. Switching to it and
// back takes 150 ns, about as much as the cheapest system call. An action that it runs with [Co.Do], and io.Copy
// between two connections, has its turns without the body and costs no more than other actions. A suspended coroutine
// has a stack of 2 KiB, or more if its frames are large: a buffer in a local variable of the body is on it. Finished
// coroutines are reused, so a short body does not pay for a new one.
//
// # Rules
//
// A body runs on its scheduler's thread. From one suspension to the next it is in one turn. It must not block by other
// means, such as time.Sleep, a channel, a mutex that is held elsewhere or a system call that sleeps: all other tasks of
// the scheduler would wait. Data that it shares with them needs no lock. A Co belongs to its body: no other goroutine
// and no other coroutine may use it. A body must not call runtime.LockOSThread, which ends the program.
//
// A coroutine is made in the first turn of its action and stays on that thread. While there is one, Run, Step and Close
// fail on another thread. The goroutine that calls them must not change how often it has locked its thread, or the
// runtime ends the program.
//
// # Libraries
//
// A library works over a [Conn] if it makes all its calls of the Conn, including Close, in coroutines of the
// connection's task. A call on any other goroutine panics there, which ends the program.
//
// These libraries do, and are tested: bufio, io, net/textproto, encoding/gob, encoding/json, mime/multipart,
// http.ReadRequest and Response.Write, net/smtp's Client, and crypto/tls with Handshake (see "Locks").
//
// These do not, because they start goroutines: net/rpc (ServeConn and Client), net/http's Server and Transport,
// tls.Conn.HandshakeContext with a context that can be cancelled, golang.org/x/crypto/ssh, most database drivers. Give
// them a [listener.Bridge], whose net.Conn any goroutine may use:
//
//	err := co.Do(&listener.Bridge{Conn: c.Under(), F: func(c net.Conn) error {
//		rpc.ServeConn(c)
//		return nil
//	}})
//
// If you do not know what a library does, use a Bridge. For TLS use package secure, as a filter of the service or of
// [Dial]. It takes less memory than a tls.Conn over a Conn, and computes handshakes on other goroutines.
//
// # Locks
//
// If a coroutine is suspended while it holds a mutex, and another coroutine of the scheduler locks the mutex, the whole
// thread blocks, and the mutex is never unlocked. A tls.Conn has such mutexes, so use it from one coroutine. If one
// coroutine reads while another writes, call Handshake first, and make sure that Write never waits:
//
//	type eager struct{ *coro.Conn }
//
//	func (e eager) Write(p []byte) (int, error) { return e.Under().Write(p) }
//
//	// send writes p to secret, which is tls.Server(e, config).
//	func send(co *coro.Co, e eager, secret *tls.Conn, p []byte) error {
//		for part := range slices.Chunk(p, 16<<10) { // with what TLS adds less than Limits.High
//			for err := e.Under().Sent(); err != nil; err = e.Under().Sent() {
//				if err := co.Unblock(err); err != nil {
//					return err
//				}
//			}
//			if _, err := secret.Write(part); err != nil {
//				return err
//			}
//		}
//		return nil
//	}
//
// If Write waited, a peer that does not read and sends a bad record would stop the scheduler: Read replies with an
// alert, for which it needs the mutex that Write holds.
//
// To bound a handshake, call Handshake within [Co.WithContext] or [Co.Within].
//
// # The end of a body
//
// When the body returns, the action is Done, or Failed with its error. A panic fails it, with the body's stack, and so
// does runtime.Goexit, which a test's FailNow calls. When the task is dropped, the call that waits returns
// [ErrStopped], and the body should return; its deferred functions run. One further call that would wait returns
// ErrStopped as well. The next one unwinds the body by runtime.Goexit, so that only its deferred functions run. A body
// that goes on computing blocks its thread, which is logged after 2 s.
package coro
