// Package libraries tests that libraries with goroutines of their own work over a listener.Bridge: golang.org/x/crypto/ssh, with its
// own clients and with OpenSSH's, and the tests of golang.org/x/net/nettest for any net.Conn. It is a module of its own, so
// that the library does not depend on them.
package libraries
