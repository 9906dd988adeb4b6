package coro

import "github.com/daimon-go/daimon/listener"

// Dial connects to address, which is "host:port" or "unix:" and a path, and waits for the connection. The addresses of
// a host race: see [listener.Connect]. The kernel may try for minutes: bound it with [Co.Within]. The filters prepare
// the connection, within 10 s for all together; package secure has one for TLS. The error is a *net.OpError. The body
// has to close the connection; if the body is stopped or panics, the connection is aborted.
//
// To dial for another task, or with other options, use [listener.Connect].
func Dial(co *Co, address string, l listener.Limits, filters ...listener.Filter) (*Conn, error) {
	connect := listener.Connect{Address: address, Limits: l, Filters: filters}
	if err := co.Do(&connect); err != nil {
		return nil, err
	}
	c := connect.Conn()
	co.dialled = append(co.dialled, c)
	return co.Conn(c), nil
}

// abortDialled aborts the connections that the body has not closed. It may have been unwound in the middle of its
// deferred functions.
func (co *Co) abortDialled() {
	for _, c := range co.dialled {
		c.Abort()
	}
	co.dialled = nil
}
