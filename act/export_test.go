package act

import "unsafe"

// What the tests measure and count with.
const (
	TaskSize    = unsafe.Sizeof(Task{})
	PostsAPass  = postsAPass
	TimersAPass = timersAPass
)
