// Package resource reads the limits of the process: descriptors, memory, and CPU time.
package resource

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory the process may have; 0 if that is not known. It is the least of the machine's
// memory, the limits of the process's control group and those around it (memory.max of version 2,
// memory.limit_in_bytes of version 1; see cgroups(7)), and Go's own soft limit (GOMEMLIMIT).
func Memory() int64 {
	n := memory(os.DirFS("/"))
	if soft := debug.SetMemoryLimit(-1); soft < math.MaxInt64 && (n == 0 || soft < n) {
		n = soft
	}
	return n
}

// memory is Memory without Go's limit, in a file system whose root is that of Linux.
func memory(root fs.FS) (least int64) {
	add := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	for _, line := range lines(root, "proc/meminfo") {
		if kB, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			add(number(strings.TrimSuffix(kB, "kB")) << 10)
		}
	}
	for _, dir := range groups(root, "memory") {
		add(number(lines(root, path.Join(dir, "memory.max"))[0])) // "max" is not a number
		add(number(lines(root, path.Join(dir, "memory.limit_in_bytes"))[0]))
	}
	return least
}

// CPUs returns how many CPUs the process may keep busy, rounded up; 0 if there is no limit. It is the least of the quotas of
// the process's control group and those around it (cpu.max of version 2, cpu.cfs_quota_us of version 1). Go's runtime reads
// the process's own group alone, and takes less than 2 for 2.
func CPUs() int { return cpus(os.DirFS("/")) }

// cpus is CPUs in a file system whose root is that of Linux.
func cpus(root fs.FS) (least int) {
	for _, dir := range groups(root, "cpu") {
		read := func(file string) string { return lines(root, path.Join(dir, file))[0] }
		for _, limit := range [...]string{read("cpu.max"), read("cpu.cfs_quota_us") + " " + read("cpu.cfs_period_us")} {
			quota, period, _ := strings.Cut(limit, " ")
			q, p := number(quota), number(period) // µs of CPU time in µs of time; "max" and -1 mean no quota
			if q <= 0 || p <= 0 {
				continue
			}
			if n := int((q-1)/p + 1); least == 0 || n < least {
				least = n
			}
		}
	}
	return least
}

// groups returns the directories of the process's control group and of those around it, in which a controller has its
// files: cgroups(7). Some may not exist.
func groups(root fs.FS, controller string) (dirs []string) {
	for _, line := range lines(root, "proc/self/cgroup") { // hierarchy:controllers:path
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount := "sys/fs/cgroup"
		if parts[1] != "" { // version 1; if controllers share a hierarchy, "cpu,cpuacct", each has a link to it
			if !slices.Contains(strings.Split(parts[1], ","), controller) {
				continue
			}
			mount = path.Join(mount, controller)
		}
		// In a container the path may be the host's, while the group's own files lie at the mount: each level is asked.
		for at := path.Join("/", parts[2]); ; at = path.Dir(at) {
			dirs = append(dirs, path.Join(mount, at))
			if at == "/" {
				break
			}
		}
	}
	return dirs
}

// number returns 0 for text that is not a number.
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// lines returns one empty line for a file that cannot be read.
func lines(root fs.FS, name string) []string {
	text, _ := fs.ReadFile(root, name)
	return strings.Split(string(text), "\n")
}
