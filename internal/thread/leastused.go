//go:build linux

package thread

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watched is how long LeastUsed looks at the load: ten ticks of /proc/stat.
const watched = 100 * time.Millisecond

// LeastUsed returns cpus in another order, those first that are used least: to which fewer threads are bound, of all
// processes that /proc shows, and then those with less load, in quarters of a CPU. The processes of other containers are
// hidden, but their load is not. Equal ones come in a random order, so that two programs that start together
// hardly choose alike. It takes 100 ms.
func LeastUsed(cpus []int) []int {
	before, _ := os.ReadFile("/proc/stat") // without it all loads are alike
	time.Sleep(watched)
	after, _ := os.ReadFile("/proc/stat")
	return order(cpus, bound(), load(string(before), string(after)))
}

// order sorts by the number of bound threads, and those with equally many by their load.
func order(cpus []int, bound, load map[int]int) []int {
	cpus = slices.Clone(cpus)
	rand.Shuffle(len(cpus), func(i, j int) { cpus[i], cpus[j] = cpus[j], cpus[i] })
	slices.SortStableFunc(cpus, func(a, b int) int {
		return cmp.Or(cmp.Compare(bound[a], bound[b]), cmp.Compare(load[a], load[b]))
	})
	return cpus
}

// bound counts the threads of each CPU that may run on no other one.
func bound() map[int]int {
	n := map[int]int{}
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // the pattern is right
	for _, task := range tasks {
		id, _ := strconv.Atoi(filepath.Base(task))
		var set unix.CPUSet
		if unix.SchedGetaffinity(id, &set) != nil || set.Count() != 1 {
			continue // it has ended, or may move
		}
		if stat, err := os.ReadFile(filepath.Join(task, "stat")); err == nil && !kernels(string(stat)) {
			n[members(&set)[0]]++
		}
	}
	return n
}

// kernels reports whether a thread is one of the kernel's own, by its line of proc_pid_stat(5). Each CPU has some, which mostly
// sleep.
func kernels(stat string) bool {
	const kthread = 0x00200000                                          // PF_KTHREAD of linux/sched.h
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // a name may have spaces and brackets
	if len(fields) < 7 {
		return false
	}
	flags, _ := strconv.ParseUint(fields[6], 10, 64)
	return flags&kthread != 0
}

// load returns how many quarters of the time between two states of proc_stat(5) each CPU was busy, rounded: less says
// nothing in so short a time.
func load(before, after string) map[int]int {
	was, quarters := ticks(before), map[int]int{}
	for cpu, now := range ticks(after) {
		busy, idle := now.busy-was[cpu].busy, now.idle-was[cpu].idle
		quarters[cpu] = (4*busy + (busy+idle)/2) / max(1, busy+idle)
	}
	return quarters
}

// usage is how long a CPU was busy and idle since the machine started.
type usage struct{ busy, idle int }

func ticks(stat string) map[int]usage {
	of := map[int]usage{}
	for line := range strings.Lines(stat) {
		name, numbers, _ := strings.Cut(line, " ")
		cpu, err := strconv.Atoi(strings.TrimPrefix(name, "cpu"))
		if err != nil {
			continue // "cpu" is their sum
		}
		var u usage
		for i, field := range strings.Fields(numbers) { // user nice system idle iowait irq softirq steal guest guest_nice
			n, _ := strconv.Atoi(field)
			switch {
			case i == 3 || i == 4:
				u.idle += n
			case i < 8: // user and nice include the guests
				u.busy += n
			}
		}
		of[cpu] = u
	}
	return of
}
