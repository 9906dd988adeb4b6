//go:build linux

package thread

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLeastUsedCPUsComeFirst(t *testing.T) {
	for _, row := range []struct {
		name        string
		bound, load map[int]int
		want        []int
	}{
		{"bound threads", map[int]int{1: 2, 2: 1}, nil, []int{3, 2, 1}},
		{"load", nil, map[int]int{1: 3, 3: 4}, []int{2, 1, 3}},
		{"a thread counts for more than load", map[int]int{2: 1}, map[int]int{1: 1, 3: 4}, []int{1, 3, 2}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, order([]int{1, 2, 3}, row.bound, row.load)) })
	}
	first := map[int]bool{}
	for range 200 { // one of three is never the first with a probability of 1e-35
		first[order([]int{1, 2, 3}, nil, nil)[0]] = true
	}
	require.Len(t, first, 3, "of equal ones any is the first")
}

func TestBoundThreadsOfTheMachineAreSeen(t *testing.T) {
	const n = 50 // more than other programs bind or free meanwhile
	cpu := CPUs()[0]
	before, after := bound()[cpu], 0
	var all sync.WaitGroup
	all.Add(n)
	onThreads(n, func(i int) {
		_ = Bind(cpu)
		all.Done()
		if i == 0 {
			all.Wait()
			after = bound()[cpu]
		}
	})
	require.InDelta(t, n, after-before, n/2)
}

func TestKernelThreadsDoNotCount(t *testing.T) {
	require.True(t, kernels("17 (migration/0) S 2 0 0 0 -1 69238848 0 0 0 0"))
	require.False(t, kernels("18 (a) S 2 0 0 0 -1 69238848) S 1 18 18 0 -1 4194560 0 0"), "what a program calls itself")
	require.False(t, kernels("18 (cut) S"))
}

func TestLoadIsInQuarters(t *testing.T) {
	before := "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 50 0 0 50 0 0 0 0 0 0\ncpu1 50 0 0 50 0 0 0 0\ncpu12 1 1 1 1 1 1 1 1 1 1\nintr 5 6\n"
	after := "cpu  104 0 0 116 0 0 0 0 0 0\ncpu0 51 0 0 57 2 0 0 0 0 0\ncpu1 51 1 1 53 0 1 1 2\ncpu12 1 1 1 1 1 1 1 1 1 1\nintr 5 7\n"
	require.Equal(t, map[int]int{0: 0, 1: 3, 12: 0}, load(before, after))
}
