package resource

import (
	"io/fs"
	"os"
	"path"
	"strings"
)

// CPUs returns how many CPUs the process may keep busy, rounded up; 0 if there is no limit. It is the least of the quotas of
// the process's control group and those around it (cpu.max of version 2, cpu.cfs_quota_us of version 1; see
// cgroups(7)). Go's runtime reads the process's own group alone, and takes less than 2 for 2.
func CPUs() int { return cpus(os.DirFS("/")) }

// cpus is CPUs in a file system whose root is that of Linux.
func cpus(root fs.FS) (least int) {
	for _, dir := range groups(root, "cpu") {
		read := func(file string) string { return strings.Join(lines(root, path.Join(dir, file)), "") }
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
