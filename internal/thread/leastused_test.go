//go:build linux

package thread

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLeastUsedCPUsComeFirst(t *testing.T) {
	const before = "cpu  9 9 9 100 9 9\ncpu1 3 0 0 90 10 7 0 0 0 0\ncpu2 3 0 0 80 0 7\ncpu3 3 0 0 50 0 7\nintr 5 6\n"
	for _, row := range []struct {
		name  string
		bound map[int]int
		after string
		want  []int
	}{
		{"fewer bound threads", map[int]int{1: 2, 2: 1}, before, []int{3, 2, 1}},
		{"less load", nil, "cpu1 4 0 0 90 15 7\ncpu2 3 0 0 90 0 7\ncpu3 3 0 0 51 0 7\n", []int{2, 1, 3}},
		{"a thread counts for more than load", map[int]int{2: 1}, "cpu1 3 0 0 90 19 7\ncpu2 3 0 0 90 0 7\ncpu3 3 0 0 50 0 7\n", []int{1, 3, 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, order([]int{1, 2, 3}, row.bound, idle(before), idle(row.after)))
		})
	}
	first := map[int]bool{}
	for range 200 { // one of three is never the first with a probability of 1e-35
		first[order([]int{1, 2, 3}, nil, nil, map[int]int{2: 3})[0]] = true
	}
	require.Len(t, first, 3, "of equal ones, or nearly, any is the first")
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
