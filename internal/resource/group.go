package resource

import (
	"bufio"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

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
