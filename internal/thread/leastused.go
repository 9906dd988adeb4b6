//go:build linux

package thread

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LeastUsed returns cpus sorted, the least used first: to which fewer threads are bound, of all processes that /proc shows,
// and then CPUs with less load. The processes of other containers are hidden, but their load is not. Equal ones come in a
// random order, so that programs that start together do not all choose alike. It takes 100 ms.
func LeastUsed(cpus []int) []int {
	before, _ := os.ReadFile("/proc/stat") // without it all loads are alike
	time.Sleep(100 * time.Millisecond)     // ten ticks
	after, _ := os.ReadFile("/proc/stat")
	return order(cpus, bound(), idle(string(before)), idle(string(after)))
}

func order(cpus []int, bound, before, after map[int]int) []int {
	cpus = slices.Clone(cpus)
	rand.Shuffle(len(cpus), func(i, j int) { cpus[i], cpus[j] = cpus[j], cpus[i] })
	slices.SortStableFunc(cpus, func(a, b int) int {
		rest := func(cpu int) int { return (after[cpu] - before[cpu]) / 4 } // less says nothing in so short a time
		return cmp.Or(bound[a]-bound[b], rest(b)-rest(a))
	})
	return cpus
}

// bound counts the threads of each CPU that may run on no other one. Threads of the kernel, which have no command line,
// mostly sleep and do not count: each CPU has some.
func bound() map[int]int {
	n := map[int]int{}
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // the pattern is right
	for _, task := range tasks {
		id, _ := strconv.Atoi(filepath.Base(task))
		var set unix.CPUSet
		if unix.SchedGetaffinity(id, &set) != nil || set.Count() != 1 {
			continue // it has ended, or may move
		}
		if command, _ := os.ReadFile(filepath.Join(task, "cmdline")); len(command) > 0 {
			n[members(&set)[0]]++
		}
	}
	return n
}

// idle reads how long each CPU has been idle since the machine started, in ticks of 10 ms: proc_stat(5).
func idle(stat string) map[int]int {
	ticks := map[int]int{}
	for line := range strings.Lines(stat) {
		var cpu, user, nice, system, idle, iowait int
		if n, _ := fmt.Sscanf(line, "cpu%d %d %d %d %d %d", &cpu, &user, &nice, &system, &idle, &iowait); n == 6 {
			ticks[cpu] = idle + iowait
		}
	}
	return ticks
}
