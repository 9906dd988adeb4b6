package process_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// note is a message of 16 bytes.
type note [2]uint64

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
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.New())
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

// page is a message that a weak pointer watches.
type page struct{ _ [64]byte }

// The mailbox keeps no reference to a message that Receive has returned, even while it has others, and a Ref of a
// process that has ended keeps none of its messages.
func TestAMailboxKeepsNoReceivedMessage(t *testing.T) {
	x := newTraced(t, process.New())
	take := 0
	to := process.Spawn(x.sys, process.Func[*page](func(p *process.Self[*page]) act.Directive {
		for range take {
			if _, ok := p.Receive(); !ok {
				return act.Done
			}
		}
		return act.Wait
	}), process.Options{})
	x.step()
	var sent []weak.Pointer[page]
	send := func(n int) {
		for range n {
			m := &page{}
			sent = append(sent, weak.Make(m))
			require.NoError(t, to.Send(x.sys, m))
		}
	}
	send(15)
	x.step()
	received := 0
	for _, take = range []int{3, 1, 1, 1, 2, 1, 0, 14} { // the third turn first moves what is left to the front
		send(1)
		x.step()
		runtime.GC()
		received += take
		for i, m := range sent {
			require.Equal(t, i < received, m.Value() == nil, "message %d of %d, of which %d were received", i, len(sent), received)
		}
	}
	take = 10 // more than there are
	send(3)
	x.step()
	require.ErrorIs(t, to.Send(x.sys, &page{}), process.ErrDead)
	runtime.GC()
	for _, m := range sent {
		require.Nil(t, m.Value())
	}
}

// A process that has ended is forgotten by all that it was connected with.
func TestAnEndedProcessIsForgotten(t *testing.T) {
	const long = 1000 * time.Hour
	x := newStepped(t, 2)
	never := future.New[int](x.g.Schedulers()[0])
	other := x.spawn(process.Options{})
	for name, connect := range map[string]func(p *jobSelf){
		"its System": func(*jobSelf) {},
		"a timer":    func(p *jobSelf) { p.After(long, exits) },
		"an operation": func(p *jobSelf) {
			process.Do(p, &listener.Sleep{For: long}, func(error) job { return exits })
		},
		"a future": func(p *jobSelf) {
			process.Do(p, never.Await(), func(error) job { return exits })
		},
		"a watch": func(p *jobSelf) {
			process.Watch(p, other, func(process.Notice) job { return exits })
		},
		"a link": func(p *jobSelf) { process.Link(p, other, false) },
	} {
		for _, there := range []int{0, 1} {
			var gone weak.Pointer[jobSelf]
			ref := x.spawn(process.Options{})
			x.on(0, ref, func(p *jobSelf) {
				gone = weak.Make(p)
				connect(p)
			})
			x.on(there, ref, exits)
			x.all()
			ref = process.Ref[job]{}
			runtime.GC()
			require.Nil(t, gone.Value(), "%s, ended on %d", name, there)
		}
	}
	runtime.KeepAlive(other)
}

func TestAnEmptiedMailboxReturnsItsMemory(t *testing.T) {
	x := newTraced(t, process.New())
	to := process.Spawn(x.sys, process.Handler(func(*process.Self[note], note) {}), process.Options{Limit: -1})
	x.step()
	for range 100_000 {
		require.NoError(t, to.Send(x.sys, note{}))
	}
	require.GreaterOrEqual(t, to.Capacity(), 100_000)
	x.step()
	require.LessOrEqual(t, to.Capacity(), 100)
}

// held is something large: a message, an order.
type held [1 << 16]byte

func (h *held) Policy() shutdown.Policy                  { return shutdown.Policy{Time: time.Hour} }
func (h *held) Act(p *process.Self[*held]) act.Directive { return act.Wait }

// A System or a Ref that is kept when the Group is closed keeps nothing that processes have held, whichever scheduler
// they were on.
func TestAClosedSystemHoldsNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		give func(to process.Ref[*held], s *act.Scheduler, sys *process.System, h *held)
	}{
		{"a message", func(to process.Ref[*held], _ *act.Scheduler, sys *process.System, h *held) { _ = to.Send(sys, h) }},
		{"a timer", func(_ process.Ref[*held], s *act.Scheduler, sys *process.System, h *held) {
			process.Spawn(sys, process.Func(func(p *process.Self[*held]) act.Directive {
				p.After(time.Hour, h)
				return act.Wait
			}), process.Options{})
		}},
		{"an order", func(_ process.Ref[*held], s *act.Scheduler, _ *process.System, h *held) { s.Group().Shutdown(h) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, sys := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped}), process.New()
			for _, s := range g.Schedulers() {
				require.NoError(t, sys.Setup(s))
			}
			to := process.Spawn[*held](sys, &held{}, process.Options{})
			h := &held{}
			w := weak.Make(h)
			row.give(to, g.Schedulers()[0], sys, h)
			for _, s := range g.Schedulers() {
				_, _ = s.Step(1)
			}
			_ = g.Close()
			h = nil
			require.Eventually(t, func() bool {
				runtime.GC()
				return w.Value() == nil
			}, servertest.Timeout, time.Millisecond)
			runtime.KeepAlive(to)
		})
	}
}
