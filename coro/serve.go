package coro

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Serve makes the Handler of a service of one that is written in straight lines. When body returns the connection is
// closed in stages, after a panic or a drop it is aborted. io.EOF, as a Read at the end returns it, is no failure.
//
// On an order it goes on until body returns: see Co.UntilOrder. Run waits for the last bytes of a closed connection,
// and for its peer to close, up to Limits.Linger.
func Serve(body func(*Conn) error) func(*listener.Conn) act.Action {
	if body == nil {
		panic("coro: Serve without a body")
	}
	p := &program{of: body, body: func(co *Co) error {
		if err := body(co.conn); err != io.EOF {
			return err
		}
		return nil
	}}
	return func(under *listener.Conn) act.Action {
		x := &struct {
			Co
			Conn
		}{Co{program: p}, Conn{under: under}}
		x.Conn.co, x.Co.conn = &x.Co, &x.Conn
		return (*routine)(&x.Co)
	}
}
