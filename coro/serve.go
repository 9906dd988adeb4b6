package coro

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Serve returns a handler that runs f as a coroutine for each connection, for service.Listener and
// program.Serve. When f returns, the connection is closed, and written bytes are still sent, within Limits.Linger.
// After a panic, or when the task is dropped, the connection is aborted. The error io.EOF is not a failure. Serve
// panics if f is nil.
//
// [Conn.Co] returns the coroutine, which can wait for other things. During shutdown f goes on until it returns, so wait
// for the next request in [Co.UntilOrder].
func Serve(f func(*Conn) error) func(*listener.Conn) act.Action {
	if f == nil {
		panic("coro: Serve without a function")
	}
	b := &body{given: f, run: func(co *Co) error {
		if err := f(co.conn); err != io.EOF {
			return err
		}
		return nil
	}}
	return func(under *listener.Conn) act.Action {
		x := &struct {
			Co
			Conn
		}{Co{body: b}, Conn{under: under}}
		x.Conn.co, x.Co.conn = &x.Co, &x.Conn
		return (*routine)(&x.Co)
	}
}
