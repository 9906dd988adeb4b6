package inbox

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An item has the number of its producer and its own.
type item struct{ producer, number int }

const producers = 8

// An inventory checks that items come once each, in each producer's order.
type inventory [producers]int

func (v *inventory) add(t *testing.T, it item) {
	if v[it.producer] != it.number {
		t.Fatalf("producer %d: number %d where %d was due", it.producer, it.number, v[it.producer])
	}
	v[it.producer]++
}

func TestRingCapacityIsTheNextPowerOfTwo(t *testing.T) {
	for _, row := range []struct{ capacity, room int }{
		{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {64, 64}, {65, 128},
	} {
		r := NewRing[int](row.capacity)
		pushed := 0
		for r.Push(pushed) {
			pushed++
		}
		require.Equal(t, row.room, pushed, "capacity %d", row.capacity)
	}
	for _, capacity := range []int{0, -1} {
		require.PanicsWithValue(t, "inbox: a ring needs room for at least one value", func() { NewRing[int](capacity) })
	}
}

func TestRingKeepsNoPoppedValue(t *testing.T) {
	r := NewRing[*int](2)
	require.True(t, r.Push(new(int)))
	r.Pop()
	for i := range r.slots {
		require.Nil(t, r.slots[i].value)
	}
}

// claim does the first half of Push, as a producer does that is interrupted there; the function it returns does the other
// half.
func claim[T any](r *Ring[T], v T) (fill func()) {
	p := r.tail.Add(1) - 1
	return func() {
		s := r.slot(p)
		s.value = v
		s.turn.Store(2*p + 1)
	}
}

func TestRingClosedWaitsForAClaimedPlace(t *testing.T) {
	r := NewRing[string](4)
	fill := claim(r, "late")
	r.Close()
	popped := make(chan string)
	go func() {
		v, _ := r.Pop()
		popped <- v
	}()
	fill()
	require.Equal(t, "late", <-popped)
	_, ok := r.Pop()
	require.False(t, ok)
}

func TestRingCloseIsExact(t *testing.T) {
	for round := range 200 {
		r := NewRing[item](1 << (round % 8))
		var all sync.WaitGroup
		var pushed [producers]int
		for p := range producers {
			all.Go(func() {
				for !r.Closed() {
					if r.Push(item{p, pushed[p]}) {
						pushed[p]++
					}
				}
			})
		}
		var seen inventory
		pop := func() bool {
			it, ok := r.Pop()
			if ok {
				seen.add(t, it)
			}
			return ok
		}
		for range 50 * round {
			pop()
		}
		r.Close()
		r.Close()
		require.False(t, r.Push(item{}))
		for pop() { // drained while producers are still on their way out
		}
		require.True(t, r.Empty())
		all.Wait()
		require.EqualValues(t, pushed, seen)
		require.False(t, pop())
	}
}

func TestRingAllocatesNothing(t *testing.T) {
	r := NewRing[item](4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Push(item{})
		r.Pop()
	}))
}

func TestAClaimedPlaceHoldsUpWhatIsBehindIt(t *testing.T) {
	r := NewRing[string](2)
	place, ok := r.Claim()
	require.True(t, ok)
	require.True(t, r.Push("second"))
	require.True(t, r.Full())
	_, ok = r.Claim()
	require.False(t, ok)
	_, ok = r.Pop()
	require.False(t, ok)
	require.False(t, r.Empty())
	r.Fill(place, "first")
	for _, want := range []string{"first", "second"} {
		v, ok := r.Pop()
		require.True(t, ok)
		require.Equal(t, want, v)
	}
	require.False(t, r.Full())
	require.True(t, r.Push("third") && r.Push("fourth") && r.Full())
	r.Close()
	require.False(t, r.Full(), "no producer waits for it")
	_, ok = r.Claim()
	require.False(t, ok)
}

// Producers wait for a consumer that pops as fast as it can: each wait ends, and nothing is lost.
func TestWaitersAreWokenWhenThereIsRoom(t *testing.T) {
	const n = 1000
	r := NewRing[int](1)
	var room Room
	woken := 0
	wake := func() { woken++ }
	full := true
	isFull := func() bool { return full }
	room.Add(wake, isFull)
	require.Zero(t, woken)
	room.Announce()
	room.Announce()
	require.Equal(t, 1, woken, "once")
	full = false
	room.Add(wake, isFull)
	require.Equal(t, 2, woken, "there was room already")
	room.Announce()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for i := range n {
				for !r.Push(i) {
					room.Wait(r.Full)
				}
			}
		})
	}
	for left := 3 * n; left > 0; {
		if _, ok := r.Pop(); ok {
			left--
			room.Announce()
		}
	}
	all.Wait()
}
