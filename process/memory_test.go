package process_test

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/process"
)

// heap returns the bytes of the heap that are in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	for range 2 { // objects with finalizers and in pools go with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// note is a message of 16 bytes.
type note [2]uint64

func TestSleepingProcessesTakeLittleMemory(t *testing.T) {
	const most = 256 // bytes each
	n := 1_000_000
	if race.Enabled {
		n = 50_000 // the race detector needs several times the memory
	}
	x := newTraced(t, process.Config{})
	refs := make([]process.Ref[note], n)
	received := 0
	body := process.Handler[note](func(_ *process.Self[note], m note) { received += int(m[0]) })
	before := heap()
	for i := range refs {
		refs[i] = process.Spawn(x.sys, body, process.Options{})
	}
	x.step()
	for _, to := range refs {
		require.NoError(t, to.Send(x.sys, note{1}))
	}
	x.step()
	require.Equal(t, n, received)
	each := float64(heap()-before) / float64(n)
	t.Logf("%.0f bytes for each of %d that sleep and have received a message", each, n)
	if !race.Enabled {
		require.LessOrEqual(t, each, float64(most))
	}
	require.EqualValues(t, n, x.sys.Stats().Alive)
	runtime.KeepAlive(refs)
}

// A message that is sent and received allocates nothing.
func TestNoAllocForAMessage(t *testing.T) {
	for _, row := range []struct {
		name string
		send func(x *traced) func()
	}{
		{"with hand-offs", func(x *traced) func() {
			var a, b process.Ref[int]
			a = x.handler(func(p *process.Self[int], m int) {
				if m > 0 {
					_ = b.Send(p, m-1)
				}
			})
			b = x.handler(func(p *process.Self[int], m int) { _ = a.Send(p, m) })
			return func() { _ = a.Send(x.sys, 100) }
		}},
		{"queued, behind others", func(x *traced) func() {
			all := make([]process.Ref[int], 10)
			for i := range all {
				all[i] = x.handler(func(p *process.Self[int], m int) {
					for j := range min(m, 1) * 3 {
						_ = all[(i+j)%len(all)].Send(p, m-1)
					}
				})
			}
			return func() { _ = all[0].Send(x.sys, 3) }
		}},
		{"sixteen at a time", func(x *traced) func() {
			to := x.handler(func(*process.Self[int], int) {})
			return func() {
				for m := range 16 {
					_ = to.Send(x.sys, m)
				}
			}
		}},
		{"from a task", func(x *traced) func() {
			to := x.handler(func(*process.Self[int], int) {})
			var wake act.Waker
			x.s.Spawn(act.Func(func(t *act.Task) act.Directive {
				_ = to.Send(t, 1)
				wake = t.Waker()
				return act.Wait
			}))
			return func() { wake.Wake() }
		}},
		{"a turn without a message", func(x *traced) func() {
			var self *process.Self[int]
			process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
				self = p
				return act.Wait
			}), process.Options{})
			return func() { self.Poke() }
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.Config{})
			send := row.send(x)
			x.step()
			once := func() {
				send()
				_, _ = x.s.Step(1 << 20)
			}
			for range 20 {
				once() // mailboxes grow
			}
			require.Zero(t, testing.AllocsPerRun(200, once))
		})
	}
}

// The test and the runtime allocate too, so the bound is one allocation for 50 messages.
func TestNoAllocForAMessageBetweenSchedulers(t *testing.T) {
	const n, tokens, hops = 100, 200, 5000
	refs := make([]process.Ref[int], n)
	var hopped atomic.Int64
	r := start(t, 2, process.Config{}, func(sys *process.System) {
		for i := range refs {
			refs[i] = process.Spawn(sys, process.Handler[int](func(p *process.Self[int], m int) {
				if hopped.Add(1); m > 0 {
					_ = refs[(i+m)%n].Send(p, m-1)
				}
			}), process.Options{})
		}
	})
	round := func(hops int) {
		for i := range tokens {
			require.NoError(t, refs[i%n].Send(r.sys, hops))
		}
		r.quiescent()
	}
	round(scaled(hops)) // mailboxes get their memory
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sent := hopped.Load()
	round(scaled(hops))
	sent = hopped.Load() - sent
	runtime.ReadMemStats(&after)
	allocs := after.Mallocs - before.Mallocs
	t.Logf("%d messages, %d allocations, of the test and the runtime, too; %+v", sent, allocs, r.sys.Stats())
	require.EqualValues(t, tokens*(scaled(hops)+1), sent)
	require.Less(t, allocs, uint64(sent/50))
	for _, to := range refs {
		to.Kill()
	}
	r.end()
}

// page is a message that a weak pointer watches.
type page struct {
	number int
	_      [64]byte
}

// The mailbox keeps no reference to a message that Receive has returned.
func TestAMailboxKeepsNoReceivedMessage(t *testing.T) {
	for _, n := range []int{1, 2, 10, 16, 17, 100} {
		t.Run(strconv.Itoa(n)+" messages", func(t *testing.T) {
			x := newTraced(t, process.Config{})
			received := 0
			to := process.Spawn(x.sys, process.Handler[*page](func(_ *process.Self[*page], m *page) {
				received += m.number
			}), process.Options{})
			x.step()
			for round := range 3 {
				var sent []weak.Pointer[page]
				for range n {
					m := &page{number: 1}
					sent = append(sent, weak.Make(m))
					require.NoError(t, to.Send(x.sys, m))
				}
				x.step()
				require.Equal(t, (round+1)*n, received)
				runtime.GC()
				for _, m := range sent {
					require.Nil(t, m.Value())
				}
			}
			require.NoError(t, to.Send(x.sys, &page{})) // the process must stay reachable
		})
	}
}

// The same while the mailbox has other messages.
func TestAMailboxKeepsNoReceivedMessageBeforeOthers(t *testing.T) {
	x := newTraced(t, process.Config{})
	take := 0
	to := process.Spawn(x.sys, process.Func[*page](func(p *process.Self[*page]) act.Directive {
		for range take {
			if _, ok := p.Receive(); !ok {
				x.note("none")
			}
		}
		return act.Wait
	}), process.Options{})
	x.step()
	var sent []weak.Pointer[page]
	send := func() {
		m := &page{}
		sent = append(sent, weak.Make(m))
		require.NoError(t, to.Send(x.sys, m))
	}
	for range 5 {
		send()
	}
	x.step()
	received := 0
	for _, take = range []int{3, 1, 1, 1, 2, 1} { // the third turn first moves what is left to the front
		send()
		require.Empty(t, x.step())
		runtime.GC()
		received += take
		for i, m := range sent {
			require.Equal(t, i < received, m.Value() == nil, "message %d of %d, of which %d were received", i, len(sent), received)
		}
	}
	require.NoError(t, to.Send(x.sys, &page{})) // the process must stay reachable
}

// A Ref of a process that has ended keeps none of its messages reachable.
func TestEndedProcessesKeepNoMessages(t *testing.T) {
	x := newTraced(t, process.Config{})
	to := process.Spawn(x.sys, process.Func[*page](func(p *process.Self[*page]) act.Directive {
		if p.Pending() > 3 {
			return act.Done
		}
		return act.Wait
	}), process.Options{})
	x.step()
	var sent []weak.Pointer[page]
	for range 5 {
		m := &page{}
		sent = append(sent, weak.Make(m))
		_ = to.Send(x.sys, m)
	}
	x.step()
	require.ErrorIs(t, to.Send(x.sys, &page{}), process.ErrDead)
	runtime.GC()
	for _, m := range sent {
		require.Nil(t, m.Value())
	}
}

func TestAnEmptiedMailboxReturnsItsMemory(t *testing.T) {
	const n = 1_000_000
	x := newTraced(t, process.Config{})
	left := 0
	to := process.Spawn(x.sys, process.Handler[note](func(*process.Self[note], note) { left-- }), process.Options{Limit: process.Unbounded})
	x.step()
	before := heap()
	for range n {
		left++
		require.NoError(t, to.Send(x.sys, note{}))
	}
	require.Greater(t, heap(), before+n*16)
	x.step()
	require.Zero(t, left)
	require.Less(t, heap(), before+n)
	require.NoError(t, to.Send(x.sys, note{}))
}
