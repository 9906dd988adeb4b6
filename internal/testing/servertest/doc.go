// Package servertest holds what the tests of several packages need to run a scheduler over real sockets: [Stepped], a
// scheduler that the test steps on its own goroutine, [Running], a Group with threads of its own, and [OS], which counts
// system calls and makes them fail on demand. [Worlds] is the TestMain of packages of simulated worlds. Only tests import it.
package servertest
