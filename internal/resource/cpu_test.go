package resource

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLeastQuotaOfCPUsCountsRoundedUp(t *testing.T) {
	const one, two = "4:cpuset:/c\n3:cpu,cpuacct:/a/b\n", "0::/pod/web\n" // the versions
	for name, test := range map[string]struct {
		group string
		files map[string]string // of sys/fs/cgroup
		want  int
	}{
		"none":            {two, nil, 0},
		"without a limit": {two, map[string]string{"pod/web/cpu.max": "max 100000\n"}, 0},
		"one":             {two, map[string]string{"pod/web/cpu.max": "100000 100000\n"}, 1},
		"a bit more":      {two, map[string]string{"pod/web/cpu.max": "100001 100000\n"}, 2},
		"hardly any":      {two, map[string]string{"pod/web/cpu.max": "1000 100000\n"}, 1},
		"of a group around it": {two, map[string]string{
			"pod/web/cpu.max": "400000 100000\n", "pod/cpu.max": "125000 50000\n", "cpu.max": "max 100000\n"}, 3},
		"version 1": {one, map[string]string{"cpu/a/b/cpu.cfs_quota_us": "250000\n", "cpu/a/b/cpu.cfs_period_us": "100000\n"}, 3},
		"version 1 without a limit": {one, map[string]string{
			"cpu/a/b/cpu.cfs_quota_us": "-1\n", "cpu/a/b/cpu.cfs_period_us": "100000\n"}, 0},
		"other things": {two, map[string]string{"cpu.max": "\n", "pod/cpu.max": "1\n", "pod/web/cpu.max": "1 0\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"proc/self/cgroup": test.group}
			for name, text := range test.files {
				files["sys/fs/cgroup/"+name] = text
			}
			require.Equal(t, test.want, cpus(tree(files)))
		})
	}
}
