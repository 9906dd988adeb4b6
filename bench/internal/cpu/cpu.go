// Package cpu lists the CPUs that the process may use, and pins programs to some of them.
package cpu

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed are the CPUs that this process may use, in ascending order.
func Allowed() (cpus []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu, n := 0, set.Count(); len(cpus) < n; cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// On runs f on a thread that is tied to cpus, as are the processes that f starts. With no cpus it just runs f.
//
// The thread does not end with f, as it would with a goroutine that ends locked: processes that it has
// started may be bound to its life (PR_SET_PDEATHSIG, prctl(2)).
func On(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("sched_setaffinity: %w", err)
	}
	return errors.Join(f(), unix.SchedSetaffinity(0, &before))
}
