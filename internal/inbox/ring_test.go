package inbox

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An item has the number of its producer and its own.
type item struct{ producer, number int }

const producers = 8

var each = tier.Choose(5_000, 5_000, 100_000)

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

func TestRingClosedDrainsAndRefuses(t *testing.T) {
	r := NewRing[int](4)
	require.True(t, r.Push(1) && r.Push(2))
	require.False(t, r.Closed())
	r.Close()
	r.Close()
	require.True(t, r.Closed())
	require.False(t, r.Push(3))
	require.False(t, r.Empty(), "what was pushed is still there")
	for want := 1; want <= 2; want++ {
		v, ok := r.Pop()
		require.True(t, ok)
		require.Equal(t, want, v)
	}
	_, ok := r.Pop()
	require.False(t, ok)
	require.True(t, r.Empty())
	require.False(t, r.Push(3))
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

func TestRingOfManyProducersLosesAndReordersNothing(t *testing.T) {
	for _, capacity := range []int{1, 256} {
		r := NewRing[item](capacity)
		rounds := each
		if capacity == 1 {
			rounds = each / 20 // as good as all of them find it full
		}
		var all sync.WaitGroup
		for p := range producers {
			all.Go(func() {
				for n := range rounds {
					for !r.Push(item{p, n}) {
						runtime.Gosched()
					}
				}
			})
		}
		var seen inventory
		for left := producers * rounds; left > 0; {
			it, ok := r.Pop()
			if !ok {
				runtime.Gosched()
				continue
			}
			seen.add(t, it)
			left--
		}
		all.Wait()
		require.True(t, r.Empty())
	}
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
		for range round {
			pop()
		}
		r.Close()
		for pop() { // drained while producers are still on their way out
		}
		require.True(t, r.Empty())
		all.Wait()
		require.EqualValues(t, pushed, seen)
		require.False(t, pop())
	}
}

// A sleeper is a consumer's half of the protocol in Ring.Empty's text.
type sleeper struct {
	asleep atomic.Bool
	wakes  chan struct{} // room for one: a wake-up is kept, not counted
	tired  int           // varies how long falling asleep takes
}

func (s *sleeper) wake() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.wakes <- struct{}{}
	}
}

// sleep parks while empty; it fails the test if it is not woken.
func (s *sleeper) sleep(t *testing.T, empty func() bool, patience <-chan time.Time) {
	s.tired++
	for range s.tired % 64 { // values come also after the last look and before this word
		s.asleep.Load()
	}
	s.asleep.Store(true)
	if !empty() && s.asleep.CompareAndSwap(true, false) {
		return
	}
	select {
	case <-s.wakes:
	case <-patience:
		t.Fatal("a wake-up was lost")
	}
}

// sleepAndWake has pushers push many times, each only after the consumer has found its last one and so is about to fall
// asleep, at varied distances from it. With one producer no other makes up for a lost wake-up.
func sleepAndWake(t *testing.T, pushers int, push func(pusher int), takeAll func(found func(pusher int)), empty func() bool) {
	rounds := each
	s := sleeper{wakes: make(chan struct{}, 1)}
	patience := time.After(2 * time.Minute)
	pending := make([]atomic.Bool, pushers)
	var stop atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer stop.Store(true)
	for p := range pushers {
		all.Go(func() {
			for n := range rounds / pushers {
				for range n % 61 { // in and out of step with the consumer
					stop.Load()
				}
				pending[p].Store(true)
				push(p)
				s.wake()
				for spun := 0; pending[p].Load() && !stop.Load(); spun++ {
					if spun > 100 {
						runtime.Gosched()
					}
				}
			}
		})
	}
	left := rounds
	found := func(p int) {
		left--
		pending[p].Store(false)
	}
	for takeAll(found); left > 0; takeAll(found) {
		s.sleep(t, empty, patience)
	}
}

func TestRingSleepAndWakeLosesNoWake(t *testing.T) {
	for pushers := 1; pushers <= 2; pushers++ {
		r := NewRing[int](4)
		takeAll := func(found func(int)) {
			for p, ok := r.Pop(); ok; p, ok = r.Pop() {
				found(p)
			}
		}
		sleepAndWake(t, pushers, func(p int) { r.Push(p) }, takeAll, r.Empty)
	}
}

func TestRingAllocatesNothing(t *testing.T) {
	r := NewRing[item](4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Push(item{})
		r.Pop()
	}))
}
