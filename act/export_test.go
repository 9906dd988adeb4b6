package act

import "unsafe"

// What the tests measure and count with.
const (
	TaskSize    = unsafe.Sizeof(Task{})
	PostsAPass  = postsAPass
	TimersAPass = timersAPass
)

// SetPin lets a test be the system that is asked to bind a thread to a CPU.
func SetPin(f func(cpu int) error) (restore func()) {
	before := pin
	pin = f
	return func() { pin = before }
}
