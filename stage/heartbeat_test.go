package stage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
)

// lasts is a stage that takes that long, unless its context ends.
func lasts(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// runsOff has e run until a task has ended, and returns that.
func runsOff(t *testing.T, run host, e *stage.Engine) store.Task {
	t.Helper()
	id := enqueued(t, e, "")
	stop := run(e)
	_, err := e.Result(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	x := get(t, e.Store(), id)
	require.True(t, x.Finished(), "%+v", x)
	return x
}

// A stage takes longer than its lease, of which the first heartbeats are not answered. One that is due meanwhile is sent at once,
// and the worker keeps the task.
func TestHeartbeatsThatHangAreGivenUp(t *testing.T) {
	t.Parallel()
	const lease = 15 * time.Second
	for _, row := range []struct {
		interval, given time.Duration
		hang            int
	}{
		{300 * time.Millisecond, time.Second, 2}, // not before
		{time.Second, 3 * time.Second, 2},        // three intervals
		{4 * time.Second, 5 * time.Second, 1},    // a third of the lease
	} {
		on := onGoroutines
		if row.hang == 1 {
			on = onEachHost
		}
		on(t, func(t *testing.T, run host) {
			var asked []time.Time
			s := &unreliable{memory.New(nil), func(ctx context.Context, call string, _ any, do func() error) error {
				if call == "Heartbeat" {
					asked = append(asked, time.Now())
					if len(asked) <= row.hang {
						return hangs(ctx)
					}
				}
				return do()
			}}
			x := runsOff(t, run, engineOf(t, s, 1, processor(func(ctx context.Context) { lasts(ctx, lease+5*time.Second) }), func(cfg *stage.Config) {
				cfg.Lease, cfg.Heartbeat = lease, row.interval
			}))
			require.EqualValues(t, 1, x.Token)
			require.Equal(t, row.given, asked[1].Sub(asked[0]))
		})
	}
}

// Heartbeats may leave out a lease for a while, as if its row were locked, and it lasts. If none renews it, the context of the
// processor ends with the lease, and the task is claimed again.
func TestContextsEndWithTheLease(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		answer func(ctx context.Context, number int, do func() error) error
		token  int64
	}{
		{"nine of ten leave it out", func(_ context.Context, n int, do func() error) error {
			if n%10 > 0 {
				return nil
			}
			return do()
		}, 1},
		{"all leave it out", func(context.Context, int, func() error) error { return nil }, 2},
		{"none is answered", func(ctx context.Context, _ int, _ func() error) error { return hangs(ctx) }, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			onGoroutines(t, func(t *testing.T, run host) {
				beats, begun := 0, 0
				s := &unreliable{memory.New(nil), func(ctx context.Context, call string, _ any, do func() error) error {
					if call != "Heartbeat" {
						return do()
					}
					beats++
					return row.answer(ctx, beats, do)
				}}
				x := runsOff(t, run, engineOf(t, s, 1, processor(func(ctx context.Context) {
					if begun++; begun > 1 {
						return
					}
					at := time.Now()
					lasts(ctx, 25*time.Second)
					if row.token == 2 {
						require.ErrorIs(t, stage.CheckSuspended(ctx), store.ErrLeaseLost)
						require.Less(t, time.Since(at), 17*time.Second, "a lease of 15, a heartbeat, and what it took to begin")
					}
				})))
				require.Equal(t, row.token, x.Token)
			})
		})
	}
}

// Run returned in a Group while a heartbeat still used the store.
func TestRunWaitsForTheLastHeartbeat(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		begun, beating := make(chan struct{}, 1), false
		s := &unreliable{memory.New(nil), func(ctx context.Context, call string, _ any, do func() error) error {
			if call != "Heartbeat" {
				return do()
			}
			begun <- struct{}{}
			beating = true
			defer func() { beating = false }()
			err := hangs(ctx)
			time.Sleep(time.Second)
			return err
		}}
		runsOff(t, run, engineOf(t, s, 1, processor(func(context.Context) { <-begun })))
		require.False(t, beating)
	})
}

// One call of each kind is not answered, as on a connection that is silent. It is given up and made again, and nothing is lost or
// processed twice.
func TestCallsThatHangAreMadeAgain(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		var mu sync.Mutex
		hung := map[string]bool{}
		s := &unreliable{memory.New(nil), func(ctx context.Context, call string, _ any, do func() error) error {
			mu.Lock()
			first := call != "Enqueue" && !hung[call]
			hung[call] = true
			mu.Unlock()
			if first {
				return hangs(ctx)
			}
			return do()
		}}
		var begun []time.Time
		x := runsOff(t, run, engineOf(t, s, 2, func(ctx context.Context, x *store.Task) (store.Commit, error) {
			if begun = append(begun, time.Now()); len(begun) == 1 {
				lasts(ctx, 5*time.Second)
				return nil, errors.New("so that there is a Return")
			}
			return nil, nil
		}, func(cfg *stage.Config) { cfg.Heartbeat = 4 * time.Second }))
		require.Less(t, begun[0].Sub(x.Created), 10*time.Second, "half of the lease, and a poll")
		require.Len(t, begun, 3)
		require.EqualValues(t, 2, x.Token)
		for _, call := range []string{"Claim", "Heartbeat", "Enter", "Finish", "Return"} {
			require.True(t, hung[call], call)
		}
	})
}

// What was broken: heartbeats were not sent while the store did not answer when the tasks of a lost claim were given back.
func TestTasksThatAreGivenBackKeepNoHeartbeatsWaiting(t *testing.T) {
	t.Parallel()
	onGoroutines(t, func(t *testing.T, run host) {
		var e *stage.Engine
		claims, returns := 0, 0
		s := memory.New(nil)
		e = engineOf(t, &unreliable{s, func(ctx context.Context, call string, _ any, do func() error) error {
			running, _ := s.List(ctx, store.Selection{Stage: "0", Running: true})
			switch {
			case call == "Claim" && len(running) > 0:
				if claims++; claims == 2 {
					return errors.Join(do(), errLost)
				}
			case call == "Return":
				if returns++; returns <= 3 {
					return hangs(ctx)
				}
			}
			return do()
		}}, 1, func(ctx context.Context, x *store.Task) (store.Commit, error) {
			if x.ID == 1 {
				enqueued(t, e, "")
				lasts(ctx, 50*time.Second)
			}
			return nil, nil
		})
		x := runsOff(t, run, e)
		require.EqualValues(t, 1, x.Token)
		require.Greater(t, returns, 3)
		require.Equal(t, "1 NORMAL", state(get(t, e.Store(), 2)))
		require.EqualValues(t, 2, get(t, e.Store(), 2).Token)
	})
}

// Work that ends while it is taken leaves no goroutine that waits for the time of the next heartbeat: TestMain would find it.
func TestNoHeartbeatsAreBegunForWorkThatHasEnded(t *testing.T) {
	for range 1000 {
		e := engineOf(t, memory.New(nil), 1, nothing, func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = 3*time.Hour, time.Hour })
		for range 5 {
			worksOff(t, e)
		}
	}
}

// A lease counts from when it was asked for: the store has begun to count before it has answered.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	var now time.Duration
	slow := func(_ context.Context, call string, _ any, do func() error) error {
		err := do()
		if call == "Claim" || call == "Heartbeat" {
			now += 600 * time.Millisecond
		}
		return err
	}
	s := &unreliable{memory.New(func() time.Time { return time.Unix(0, 0).Add(now) }), slow}
	e := engineOf(t, s, 1, nothing, func(cfg *stage.Config) { cfg.Lease = time.Second })
	stage.Stepped(e, func() time.Duration { return now })
	enqueued(t, e, "")
	_, err := e.Fire(t.Context())
	require.NoError(t, err)
	w := e.Claimed()[0]
	e.Expire()
	require.NoError(t, w.Cause())
	e.Beat() // asked at 0.6 s, so it is good until 1.6 s; now it is 1.2 s
	now += 300 * time.Millisecond
	e.Expire()
	require.NoError(t, w.Cause())
	now += 200 * time.Millisecond
	e.Expire()
	require.ErrorIs(t, w.Cause(), store.ErrLeaseLost)
}

// A heartbeat said that the lease had ended, since the task had finished, and the end was never known.
func TestAHeartbeatAfterALostAnswerLeavesTheEndToBeKnown(t *testing.T) {
	finished, ended := 0, 0
	s := &unreliable{memory.New(nil), func(_ context.Context, call string, _ any, do func() error) error {
		err := do()
		if call == "Finish" {
			if finished++; finished == 1 {
				return errLost
			}
		}
		return err
	}}
	e := engineOf(t, s, 1, nothing, func(cfg *stage.Config) { cfg.OnEnd = func(store.Task) { ended++ } })
	stage.Stepped(e, func() time.Duration { return 0 })
	enqueued(t, e, "")
	_, err := e.Fire(t.Context())
	require.NoError(t, err)
	w := e.Claimed()[0]
	for finished == 0 {
		require.False(t, w.Step())
	}
	e.Beat()
	require.True(t, w.Step())
	require.Equal(t, 2, finished)
	require.Equal(t, 1, ended)
}

// Each heartbeat sends what was noted last, unless the answer of an earlier one has said that it is stored.
func TestProgressIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, arg any, do func() error) error {
			err := do()
			if call == "Heartbeat" {
				p := arg.([]store.Renewal)[0].Progress
				if sent = append(sent, p.Stage+string(p.Data)); len(sent) == 2 {
					return errLost
				}
			}
			return err
		}}
		ctx, cancel := context.WithCancel(t.Context())
		e := engineOf(t, s, 1, func(ctx context.Context, _ *store.Task) (store.Commit, error) {
			time.Sleep(1500 * time.Millisecond)
			for _, data := range []string{"1", "2"} {
				stage.SetProgress(ctx, []byte(data))
			}
			time.Sleep(2 * time.Second)
			stage.SetProgress(ctx, nil)
			time.Sleep(2 * time.Second)
			return nil, nil
		}, func(cfg *stage.Config) { cfg.OnEnd = func(store.Task) { cancel() } })
		enqueued(t, e, "")
		require.NoError(t, e.Run(ctx))
		require.Equal(t, []string{"", "0+2", "0+2", "0+", ""}, sent)
	})
}

// What is noted wrongly is a failure of the stage, or changes nothing.
func TestProgressOutOfPlace(t *testing.T) {
	var behind context.Context
	ended := make(chan store.Task, 1)
	e := engineOf(t, memory.New(nil), 1, func(ctx context.Context, task *store.Task) (store.Commit, error) {
		switch string(task.Data) {
		case "too much":
			stage.SetProgress(ctx, make([]byte, 4097))
		case "late":
			behind = ctx
			stage.SetProgress(ctx, []byte("in time"))
			return nil, stage.Permanent(errors.New("no luck"))
		}
		return nil, nil
	}, func(cfg *stage.Config) { cfg.OnEnd = func(t store.Task) { ended <- t } }, once)
	end := func(data string) store.Task {
		fires(t, e, enqueued(t, e, data))
		return <-ended
	}
	require.Contains(t, end("too much").Failure, "stage: SetProgress with 4097 bytes; 4096 is the most")
	task := end("late")
	require.Equal(t, "in time", string(task.Progress))
	stage.SetProgress(behind, []byte("late"))
	task, err := e.Store().Get(t.Context(), task.ID)
	require.NoError(t, err)
	require.Equal(t, "in time", string(task.Progress))
	require.Equal(t, "0+", task.ProgressStage)
	require.PanicsWithValue(t, "stage: SetProgress is for the context that a processor was given", func() { stage.SetProgress(t.Context(), nil) })
}
