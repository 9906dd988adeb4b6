// Package resource reads the limits of the process: descriptors, memory, and CPU time.
package resource

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
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
		for _, file := range [...]string{"memory.max", "memory.limit_in_bytes"} {
			for _, limit := range lines(root, path.Join(dir, file)) {
				add(number(limit)) // "max" is not a number
			}
		}
	}
	return least
}
