package inbox

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// chain returns what the nodes of a chain are for.
func chain[T any](n *Node[T]) (all []T) {
	for n != nil {
		all = append(all, n.Of)
		n = n.Next()
	}
	return all
}

func TestStackReturnsOldestFirst(t *testing.T) {
	var s Stack[string]
	a, b, c := &Node[string]{Of: "a"}, &Node[string]{Of: "b"}, &Node[string]{Of: "c"}
	require.True(t, s.Empty())
	require.Nil(t, s.TakeAll())
	for _, n := range []*Node[string]{a, b, c} {
		require.True(t, s.Push(n))
	}
	require.False(t, s.Empty())
	require.Equal(t, []string{"a", "b", "c"}, chain(s.TakeAll()))
	require.True(t, s.Empty())

	require.Nil(t, a.next, "it keeps no other one in memory")
	for _, n := range []*Node[string]{c, a} { // again
		s.Push(n)
	}
	require.Equal(t, []string{"c", "a"}, chain(s.TakeAll()))
}

func TestStackCloseIsExact(t *testing.T) {
	for round := range 200 {
		var s Stack[item]
		var all sync.WaitGroup
		var pushed [producers]int
		for p := range producers {
			all.Go(func() {
				for {
					n := &Node[item]{Of: item{p, pushed[p]}}
					if !s.Push(n) {
						return
					}
					pushed[p]++
					runtime.Gosched() // else one of them fills the memory
				}
			})
		}
		var seen inventory
		count := func(n *Node[item]) {
			for n != nil {
				seen.add(t, n.Of)
				n = n.Next()
			}
		}
		for range round % 10 {
			count(s.TakeAll())
			runtime.Gosched()
		}
		count(s.Close())
		require.Nil(t, s.Close())
		all.Wait()
		require.EqualValues(t, pushed, seen)
		require.Nil(t, s.TakeAll())
		require.True(t, s.Empty())
	}
}

func TestStackTakingWhileItIsClosedDoesNotOpenIt(t *testing.T) {
	for range 1000 {
		var s Stack[int]
		s.Push(&Node[int]{})
		var all sync.WaitGroup
		var taken, left int
		all.Go(func() { taken = len(chain(s.TakeAll())) })
		all.Go(func() { left = len(chain(s.Close())) })
		all.Wait()
		require.Equal(t, 1, taken+left, "one of them has it")
		require.False(t, s.Push(&Node[int]{}))
	}
}
