package stage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// hanging is a Store that does not answer the first calls before their contexts end.
type hanging struct {
	stage.Store
	claims, heartbeats int // how many are left
	leaves             int // how many of ten heartbeats leave out all leases, as if they were locked
	returns            int
	lost               int // the number of the claim whose answer is lost, of those that found a task

	asked []time.Time // for heartbeats
	given []time.Duration
}

func hangs(ctx context.Context, left *int) error {
	if *left--; *left < 0 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hanging) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	if err := hangs(ctx, &h.claims); err != nil {
		return nil, err
	}
	tasks, err := h.Store.Claim(ctx, c)
	if len(tasks) > 0 {
		if h.lost--; h.lost == 0 {
			return nil, errors.New("the answer is lost")
		}
	}
	return tasks, err
}

func (h *hanging) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	if err := hangs(ctx, &h.returns); err != nil {
		return "", err
	}
	return h.Store.Return(ctx, l, r)
}

func (h *hanging) Heartbeat(ctx context.Context, renewals []stage.Renewal, length time.Duration) ([]stage.Beat, error) {
	end, _ := ctx.Deadline()
	h.asked, h.given = append(h.asked, time.Now()), append(h.given, time.Until(end))
	if err := hangs(ctx, &h.heartbeats); err != nil {
		return nil, err
	}
	if len(h.asked)%10 < h.leaves {
		return make([]stage.Beat, len(renewals)), nil
	}
	return h.Store.Heartbeat(ctx, renewals, length)
}

// ends has an engine work until it has ended a task, on goroutines and in a Group, with the clock of synctest.
func ends(t *testing.T, s hanging, p func(context.Context), change func(*stage.Config), check func(*testing.T, *hanging, stage.Task)) {
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s
				s.Store = memory.New(nil)
				ctx, cancel := context.WithCancel(t.Context())
				e := engineOf(t, &s, 1, processor(p), func(cfg *stage.Config) {
					cfg.OnEnd = func(stage.Task) { cancel() }
					change(cfg)
				})
				id, err := e.Enqueue(ctx, "task", nil)
				require.NoError(t, err)
				require.NoError(t, run(ctx, e))
				x, err := s.Get(t.Context(), id)
				require.NoError(t, err)
				require.True(t, x.Finished(), "%+v", x)
				check(t, &s, x)
				time.Sleep(time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
			})
		})
	}
}

// A stage takes three leases, of which the first heartbeats are not answered. One that is due meanwhile is sent at once,
// and the worker keeps the task.
func TestHeartbeatsThatHangAreGivenUp(t *testing.T) {
	const lease = 15 * time.Second
	for _, row := range []struct {
		interval, given time.Duration
		hang            int
	}{
		{300 * time.Millisecond, time.Second, 2}, // not before
		{time.Second, 3 * time.Second, 2},        // three intervals
		{4 * time.Second, 5 * time.Second, 1},    // a third of the lease
	} {
		ends(t, hanging{heartbeats: row.hang}, func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(3 * lease):
			}
		}, func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = lease, row.interval }, func(t *testing.T, s *hanging, x stage.Task) {
			require.EqualValues(t, 1, x.Token)
			require.Equal(t, row.given, s.given[0])
			require.Equal(t, row.given, s.asked[1].Sub(s.asked[0]))
		})
	}
}

// lingering is a Store whose heartbeats return a while after their contexts have ended.
type lingering struct {
	stage.Store
	begun   chan struct{}
	running atomic.Int32
}

func (s *lingering) Heartbeat(ctx context.Context, _ []stage.Renewal, _ time.Duration) ([]stage.Beat, error) {
	s.running.Add(1)
	defer s.running.Add(-1)
	s.begun <- struct{}{}
	<-ctx.Done()
	time.Sleep(time.Second)
	return nil, ctx.Err()
}

// Run returned in a Group while a heartbeat still used the store.
func TestRunWaitsForTheLastHeartbeat(t *testing.T) {
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lingering{Store: memory.New(nil), begun: make(chan struct{}, 1)}
				ctx, cancel := context.WithCancel(t.Context())
				e := engineOf(t, s, 1, processor(func(context.Context) { <-s.begun }), func(cfg *stage.Config) {
					cfg.OnEnd = func(stage.Task) { cancel() }
				})
				_, err := e.Enqueue(ctx, "task", nil)
				require.NoError(t, err)
				require.NoError(t, run(ctx, e))
				require.Zero(t, s.running.Load())
				time.Sleep(2 * time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
			})
		})
	}
}

// No heartbeat is answered: the context of the processor ends with the lease, and the task is claimed again.
func TestContextsEndWithTheLease(t *testing.T) {
	var begun []time.Time
	var lost time.Time
	var cause error
	ends(t, hanging{heartbeats: 1 << 30}, func(ctx context.Context) {
		if begun = append(begun, time.Now()); len(begun) == 1 {
			<-ctx.Done()
			lost, cause = time.Now(), stage.CheckSuspended(ctx)
		}
	}, func(*stage.Config) {}, func(t *testing.T, _ *hanging, x stage.Task) {
		require.EqualValues(t, 2, x.Token)
		require.ErrorIs(t, cause, stage.ErrLeaseLost)
		require.Less(t, lost.Sub(begun[0]), 17*time.Second) // a lease of 15, a heartbeat, and what it took to begin
		begun = nil
	})
}

// Heartbeats may leave out a lease for a while, and it lasts. If all do, the context ends with the lease.
func TestAHeartbeatThatLeavesOutALease(t *testing.T) {
	for leaves, token := range map[int]int64{9: 1, 10: 2} {
		begun, lost := 0, time.Duration(0)
		ends(t, hanging{leaves: leaves}, func(ctx context.Context) {
			if begun++; begun == 1 {
				at := time.Now()
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				lost = time.Since(at)
			}
		}, func(*stage.Config) {}, func(t *testing.T, _ *hanging, x stage.Task) {
			require.Equal(t, token, x.Token)
			if leaves == 10 {
				require.Less(t, lost, 17*time.Second)
			}
			begun = 0
		})
	}
}

func TestClaimsThatHangAreGivenUp(t *testing.T) {
	var begun time.Time
	ends(t, hanging{claims: 1}, func(context.Context) { begun = time.Now() }, func(*stage.Config) {}, func(t *testing.T, _ *hanging, x stage.Task) {
		require.Less(t, begun.Sub(x.Created), 10*time.Second) // half of the lease, and a poll
	})
}

// What was broken: heartbeats were not sent while the store did not answer when the tasks of a lost claim were given back.
func TestTasksThatAreGivenBackKeepNoHeartbeatsWaiting(t *testing.T) {
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := &hanging{Store: memory.New(nil), lost: 2, returns: 3}
				var e *stage.Engine
				var ended atomic.Int32
				e = engineOf(t, s, 1, stage.ProcessorFunc(func(ctx context.Context, x *stage.Task) (stage.Commit, error) {
					if string(x.Data) != "long" {
						return nil, nil
					}
					n, err := e.NewTask("task", nil)
					require.NoError(t, err)
					_, err = e.EnqueueAll(ctx, n, n)
					require.NoError(t, err)
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					return nil, nil
				}), func(cfg *stage.Config) {
					cfg.OnEnd = func(stage.Task) {
						if ended.Add(1) == 3 {
							cancel()
						}
					}
				})
				_, err := e.Enqueue(ctx, "task", []byte("long"))
				require.NoError(t, err)
				require.NoError(t, run(ctx, e))
				require.Negative(t, s.returns)
				all, err := s.List(t.Context(), stage.Selection{})
				require.NoError(t, err)
				require.Len(t, all, 3)
				for i, token := range []int64{1, 2, 2} {
					require.True(t, all[i].Finished(), "%+v", all[i])
					require.Equal(t, token, all[i].Token)
				}
				time.Sleep(time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
			})
		})
	}
}

// Work that ends while it is taken leaves no goroutine that waits for the time of the next heartbeat: TestMain would find it.
func TestNoHeartbeatsAreBegunForWorkThatHasEnded(t *testing.T) {
	for range 1000 {
		e := engineOf(t, memory.New(nil), 1, processor(func(context.Context) {}), func(cfg *stage.Config) {
			cfg.Lease, cfg.Heartbeat = 3*time.Hour, time.Hour
		})
		for range 5 {
			worksOff(t, e)
		}
	}
}
