package future_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

// job is an action of n turns that ends with d and records its calls.
type job struct {
	n    int
	end  func(t *act.Task) act.Directive
	seen string
}

func (j *job) Act(t *act.Task) act.Directive {
	if j.n--; j.n > 0 {
		return act.Yield
	}
	return j.end(t)
}

func (j *job) Stop(*act.Task, shutdown.Order) { j.seen += "told " }

func (j *job) Close() error {
	j.seen += "closed"
	return nil
}

func (j *job) String() string { return "job" }

func done(*act.Task) act.Directive     { return act.Done }
func failNo(t *act.Task) act.Directive { return t.Fail(errNo) }

func TestDoHasTheOutcomeOfItsAction(t *testing.T) {
	seven := func() int { return 7 }
	for _, row := range []struct {
		name  string
		end   func(t *act.Task) act.Directive
		value func() int
		want  string
	}{
		{"done", done, seven, "7"},
		{"failed", failNo, seven, "no"},
		{"failed without a reason", func(*act.Task) act.Directive { return act.Failed }, seven, "failed without saying why"},
		{"a panic", func(*act.Task) act.Directive { panic("boom") }, seven, "panic: boom"},
		{"a panic with a stack", func(*act.Task) act.Directive { panic(&act.Panic{Value: "deep"}) }, seven, "panic: deep"},
		{"a panic of value", done, func() int { panic("boom") }, "panic: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, logs := stepped(t)
			j := &job{n: 3, end: row.end}
			f := future.Do(s, j, row.value)
			require.Equal(t, "pending", outcome(f))
			require.NoError(t, s.Run())
			require.Equal(t, row.want, outcome(f))
			require.Equal(t, "closed", j.seen)
			require.Zero(t, logs.Len(), "the failure is the future's")
		})
	}
}

func TestDoPassesOrdersOnAndFailsWhenItIsDropped(t *testing.T) {
	s, _ := stepped(t)
	j := &job{n: math.MaxInt}
	f := future.Do(s, j, func() int { return 7 })
	_, err := s.Step(3)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Turns: 2, Drop: true})
	var cut *shutdown.Cut
	require.ErrorAs(t, s.Run(), &cut)
	require.Equal(t, []shutdown.Count{{Name: "job", N: 1}}, cut.Names)
	require.Equal(t, "told closed", j.seen)
	require.Equal(t, act.ErrDropped.Error(), outcome(f))
}

func TestDoDroppedDuringAnOffloadFailsAtOnce(t *testing.T) {
	s, _ := stepped(t)
	release, ended := make(chan bool), make(chan bool)
	f := future.Do(s, &job{end: func(t *act.Task) act.Directive {
		return t.Offload(func() { <-release; close(ended) })
	}}, func() int { return 7 })
	_, err := s.Step(1)
	require.NoError(t, err)
	require.Error(t, s.Close())
	require.Equal(t, act.ErrDropped.Error(), outcome(f))
	close(release)
	<-ended
}

func TestWithin(t *testing.T) {
	const never = time.Duration(math.MaxInt64)
	for _, row := range []struct {
		name     string
		d        time.Duration
		resolved time.Duration // when; never
		fails    bool
		want     string
	}{
		{"in time", 10, 9, false, "7"},
		{"a failure in time", 10, 9, true, "no"},
		{"at the last moment", 10, 10, false, "7"},
		{"too late", 10, 11, false, "future: not resolved within 10ns: i/o timeout"},
		{"never", 10, never, false, "future: not resolved within 10ns: i/o timeout"},
		{"before", 0, -1, false, "7"},
		{"no time at all", 0, never, false, "future: not resolved within 0s: i/o timeout"},
		{"less than none", -5, never, false, "future: not resolved within -5ns: i/o timeout"},
		{"all the time there is", never, 50, false, "7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &servertest.Clock{}
			s := act.New(act.Config{Clock: c, Logger: zap.NewNop()})
			f := future.New[int](s)
			resolve := func() {
				if row.fails {
					_ = f.Fail(errNo)
				} else {
					_ = f.Resolve(7)
				}
			}
			if row.resolved < 0 {
				resolve()
			}
			g := f.Within(row.d)
			for at := time.Duration(0); at <= 60; at++ {
				if at == row.resolved {
					resolve()
				}
				servertest.Step(t, s)
				if at < row.d && at < row.resolved {
					require.Equal(t, "pending", outcome(g), "never early: %d", at)
				}
				c.Pass(1)
			}
			require.Equal(t, row.want, outcome(g))
			if _, err := g.Value(); err != nil && !row.fails {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			}
			require.NoError(t, s.Close(), "nothing is left of it")
		})
	}
}
