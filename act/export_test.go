package act

import "unsafe"

// What the tests measure and count with.
const (
	TaskSize    = unsafe.Sizeof(Task{})
	PostsAPass  = postsAPass
	TimersAPass = timersAPass
)

// SetBind lets a test be the system that is asked to bind a thread to a CPU.
func SetBind(f func(cpu int) error) (restore func()) { return set(&bind, f) }

// SetQuota lets a test be the system that says how many CPUs the process may keep busy.
func SetQuota(f func() int) (restore func()) { return set(&quota, f) }

func set[F any](to *F, f F) (restore func()) {
	before := *to
	*to = f
	return func() { *to = before }
}
