// Package resource reads what the process may have: descriptors and memory.
package resource

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
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
	for _, line := range lines(root, "proc/self/cgroup") { // hierarchy:controllers:path
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
		}
		// In a container the path may be the host's, while the group's own files lie at the mount: each level is asked.
		for at := path.Join("/", parts[2]); ; at = path.Dir(at) {
			for _, limit := range lines(root, path.Join(mount, at, file)) {
				add(number(limit)) // "max" is no number
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// number returns 0 for what is not a number.
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// lines returns nothing of a file that cannot be read.
func lines(root fs.FS, name string) (all []string) {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}
