//go:build linux

package thread

import (
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// allowed is read while packages are initialised. No thread has been bound then, and the caller is the first thread of
// the process, whose mask is that of taskset, cpuset or a container. Later that thread may be bound itself.
var allowed = affinity()

// ID returns the number of the calling thread, gettid(2). A number is unique among living threads only: the kernel gives
// it out again.
func ID() uint64 { return uint64(unix.Gettid()) }

// Bind binds the calling thread, and processes that it starts, to one CPU, by the kernel's number for it. The caller does not
// unlock its goroutine from the thread, which would serve other goroutines on that one CPU only. The error wraps EINVAL if
// there is no such CPU, it is offline, or the process may not use it.
func Bind(cpu int) error {
	var set unix.CPUSet // 1024 CPUs
	set.Set(cpu)        // does nothing out of range: the kernel refuses an empty set
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("thread: bind to CPU %d: %w", cpu, err)
	}
	return nil
}

// CPUs returns the numbers of the CPUs that this process was allowed to use when it started, in ascending order, never
// none. The slice is the caller's. For a limit on CPU time see package resource.
func CPUs() []int { return slices.Clone(allowed) }

// affinity falls back on all CPUs: a sandbox may forbid the call (EPERM), and a kernel built for more than 1024 CPUs
// refuses our set (EINVAL).
func affinity() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return upTo(runtime.NumCPU())
	}
	return members(&set)
}

func members(set *unix.CPUSet) []int {
	cpus := make([]int, 0, set.Count())
	for cpu := 0; len(cpus) < cap(cpus); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
