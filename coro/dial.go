package coro

import "github.com/daimon-go/daimon/listener"

// Dial connects to address, "host:port" or "unix:" and a path. The connection is the body's to close; if that is stopped
// or panics before, it is aborted. (One that another task is to have is dialled by a listener.Connect.) Bound it with
// Within: the system may try for minutes. It fails with a *listener.ConnectError.
func Dial(co *Co, address string, l listener.Limits) (*Conn, error) {
	connect := listener.Connect{Address: address, Limits: l}
	if err := co.Do(&connect); err != nil {
		return nil, err
	}
	c := connect.Conn()
	co.dialled = append(co.dialled, c)
	return co.Conn(c), nil
}

// abortDialled is for a body that did not come to it: it may have been unwound in the middle of its cleaning up.
func (co *Co) abortDialled() {
	for _, c := range co.dialled {
		c.Abort()
	}
	co.dialled = nil
}
