package resource

import (
	"io/fs"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestTheLeastLimitOfMemoryCounts(t *testing.T) {
	const (
		mib     = 1 << 20
		machine = "MemTotal:       1048576 kB\nMemFree:  1 kB\n"
		none    = "9223372036854771712\n" // what version 1 says without a limit
	)
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":    {map[string]string{}, 0},
		"the machine's alone": {map[string]string{"proc/meminfo": machine}, 1024 * mib},
		"version 2": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/pod/web\n", "sys/fs/cgroup/pod/web/memory.max": "67108864\n",
		}, 64 * mib},
		"version 2, of a group around it": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/pod/web\n",
			"sys/fs/cgroup/pod/web/memory.max": "max\n", "sys/fs/cgroup/pod/memory.max": "134217728\n",
		}, 128 * mib},
		"version 2, with a path of the host": {map[string]string{
			"proc/self/cgroup": "0::/../../kubepods/x\n", "sys/fs/cgroup/memory.max": "67108864\n",
		}, 64 * mib},
		"version 2 without a limit": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 1024 * mib},
		"version 1": {map[string]string{
			"proc/meminfo":     machine,
			"proc/self/cgroup": "4:cpu,cpuacct:/a\n3:memory:/docker/1\n0::/system\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "268435456\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          none,
		}, 256 * mib},
		"version 1 without a limit": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "3:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": none,
		}, 1024 * mib},
		"files with other things in them": {map[string]string{
			"proc/meminfo": "MemTotal: much\n", "proc/self/cgroup": "\n:\n1:memory\n",
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, memory(tree(test.files)))
		})
	}
}

// tree is a file system with these files.
func tree(files map[string]string) fs.FS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestTheSoftLimitOfTheRuntimeCounts(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20))
	require.EqualValues(t, 1<<20, Memory())
}

func TestTheProcessMayHaveDescriptors(t *testing.T) {
	require.NoError(t, SpareDescriptor())
	require.GreaterOrEqual(t, Descriptors(), 0)
}
