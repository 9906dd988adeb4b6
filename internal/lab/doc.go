// Package lab is where the tests of the upper floors put a scheduler on the table: real sockets, a
// scheduler that is stepped by the test on its own goroutine, and between both an [OS] that counts calls
// and makes them fail on demand. Only tests import it.
package lab
