package process_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

// onOneAndTwoSchedulers runs f with one scheduler, on which all sends are hand-offs, and with two, between which
// processes move.
func onOneAndTwoSchedulers(t *testing.T, f func(t *testing.T, schedulers int)) {
	for schedulers := 1; schedulers <= 2; schedulers++ {
		t.Run(fmt.Sprintf("%d schedulers", schedulers), func(t *testing.T) { f(t, schedulers) })
	}
}

func TestManyProcessesSpawn(t *testing.T) {
	onOneAndTwoSchedulers(t, func(t *testing.T, schedulers int) {
		const parents, each = 1000, 150
		var ran atomic.Int64
		child := process.Func[int](func(*process.Self[int]) act.Directive {
			ran.Add(1)
			return act.Done
		})
		parent := process.Func[int](func(p *process.Self[int]) act.Directive {
			for range each {
				process.Spawn(p, child, process.Options{})
			}
			return act.Done
		})
		r := start(t, schedulers, process.Config{}, func(sys *process.System) {
			for range parents {
				process.Spawn(sys, parent, process.Options{})
			}
		})
		r.end()
		require.EqualValues(t, parents*each, ran.Load())
		require.EqualValues(t, parents*(each+1), r.sys.Stats().Spawned)
	})
}

// ordered returns an Action that receives the numbers from 0 to last, and ends.
func ordered(t *testing.T, last int) process.Action[int] {
	next := 0
	return process.Handler(func(p *process.Self[int], m int) {
		if m != next {
			t.Errorf("%d came instead of %d", m, next)
			p.Exit()
		}
		if next++; m == last {
			p.Exit()
		}
	})
}

// The order holds for senders of all kinds, also when they wait for room many times.
func TestMessagesOfOneSenderArriveInOrder(t *testing.T) {
	const n = 10_000
	for _, limit := range []int{1, 10, 1024, process.Unbounded} {
		o := process.Options{Limit: limit}
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			onOneAndTwoSchedulers(t, func(t *testing.T, schedulers int) {
				t.Run("from a process", func(t *testing.T) {
					start(t, schedulers, process.Config{}, func(sys *process.System) {
						to := process.Spawn(sys, ordered(t, n-1), o)
						i := 0
						process.Spawn(sys, process.Func[int](func(p *process.Self[int]) act.Directive {
							for range 100 {
								if err := to.Send(p, i); err != nil {
									return p.Fail(err)
								}
								i++
							}
							if i == n {
								return act.Done
							}
							return act.Yield
						}), process.Options{})
					}).end()
				})
				t.Run("from a task", func(t *testing.T) {
					var to process.Ref[int]
					r := start(t, schedulers, process.Config{}, func(sys *process.System) {
						to = process.Spawn(sys, ordered(t, n-1), o)
					})
					i := 0
					r.On(schedulers-1, func(s *act.Scheduler) {
						s.Spawn(act.Func(func(t *act.Task) act.Directive {
							for ; i < n; i++ {
								if err := to.Send(t, i); err != nil {
									return listener.Next(t, err)
								}
							}
							return act.Done
						}))
					})
					r.end()
				})
				t.Run("from a goroutine", func(t *testing.T) {
					var to process.Ref[int]
					r := start(t, schedulers, process.Config{}, func(sys *process.System) {
						to = process.Spawn(sys, ordered(t, n-1), o)
					})
					for i := range n {
						require.NoError(t, to.Deliver(t.Context(), i))
					}
					r.end()
				})
			})
		})
	}
}

// numbered is a message with its sender and its number.
type numbered struct{ from, number int }

func TestMessagesOfManySendersArriveInOrder(t *testing.T) {
	const senders, each = 1000, 101
	for _, limit := range []int{10, 1024, process.Unbounded} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			onOneAndTwoSchedulers(t, func(t *testing.T, schedulers int) {
				next := make([]int, senders)
				left := senders * each
				start(t, schedulers, process.Config{Limit: limit}, func(sys *process.System) {
					to := process.Spawn(sys, process.Handler[numbered](func(p *process.Self[numbered], m numbered) {
						if m.number != next[m.from] {
							t.Errorf("sender %d: %d came instead of %d", m.from, m.number, next[m.from])
						}
						next[m.from]++
						if left--; left == 0 {
							p.Exit()
						}
					}), process.Options{})
					for i := range senders {
						n := 0
						process.Spawn(sys, process.Func[numbered](func(p *process.Self[numbered]) act.Directive {
							for range 1 + i%3 {
								if n == each {
									return act.Done
								}
								if err := to.Send(p, numbered{i, n}); err != nil {
									return p.Fail(err)
								}
								n++
							}
							return act.Yield
						}), process.Options{})
					}
				}).end()
				require.Zero(t, left)
			})
		})
	}
}

// Each message is received, dropped or refused, and counted once.
func TestReceiversThatEndEarly(t *testing.T) {
	const senders, receivers, each = 50, 200, 500
	onOneAndTwoSchedulers(t, func(t *testing.T, schedulers int) {
		var sent, refused, received atomic.Int64
		r := start(t, schedulers, process.Config{Limit: 20}, func(sys *process.System) {
			var to []process.Ref[int]
			for i := range receivers {
				left := i
				to = append(to, process.Spawn(sys, process.Handler[int](func(p *process.Self[int], _ int) {
					received.Add(1)
					if left--; left <= 0 {
						p.Exit()
					}
				}), process.Options{}))
			}
			for i := range senders {
				n := 0
				process.Spawn(sys, process.Func[int](func(p *process.Self[int]) act.Directive {
					for range 7 {
						switch err := to[(i+n)%receivers].Send(p, n); {
						case err == nil:
							sent.Add(1)
						case errors.Is(err, process.ErrDead):
							refused.Add(1)
						default:
							return p.Fail(err)
						}
						if n++; n == each {
							return act.Done
						}
					}
					return act.Yield
				}), process.Options{})
			}
		})
		r.quiescent() // some receivers would receive more than was sent
		n := r.sys.Stats()
		require.LessOrEqual(t, n.Alive, int64(receivers))
		require.EqualValues(t, senders*each, sent.Load()+refused.Load())
		require.EqualValues(t, senders*each, received.Load()+n.Dropped)
		t.Logf("%d received, %d refused, %d dropped unread", received.Load(), refused.Load(), n.Dropped-refused.Load())
		require.Positive(t, refused.Load())
		r.Group.Shutdown(servertest.Cut)
	})
}
