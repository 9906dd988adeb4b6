package tasklet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

func requireCut(t testing.TB, err error) *shutdown.Cut {
	t.Helper()
	var cut *shutdown.Cut
	require.True(t, errors.As(err, &cut), "%v", err)
	return cut
}

func names(cut *shutdown.Cut) (all string) {
	for _, n := range cut.Names {
		all += n.String() + " "
	}
	return all
}

// forever answers Sync until it is told of an order.
type forever struct {
	h       *history
	name    string
	heed    bool
	stopped bool
}

func (f *forever) String() string { return f.name }

func (f *forever) Task(*tasklet.Runner) tasklet.Directive {
	f.h.note(f.name)
	if f.stopped && f.heed {
		return done
	}
	return sync_
}

func (f *forever) Stop(_ *act.Task, o shutdown.Order) {
	f.h.note("(" + f.name + ")")
	f.stopped = true
}

func TestTheTermsOfAnOrder(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy shutdown.Policy
		want   string // of the first Run, told apart
		left   string
		again  string // of a second one, which is halted after some phases
	}{
		{"turns are SYNC phases", shutdown.Policy{Turns: 2}, "(A)(B)ABAB", "A B ", "AB"},
		{"halt and drop", shutdown.Policy{Kind: shutdown.Halt, Drop: true}, "(A)(B)", "A B ", ""},
		{"suspend calls no Stop", shutdown.Policy{Kind: shutdown.Suspend}, "", "A B ", "AB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, h := tasklet.NewRunner(act.Config{}), &history{}
			schedule(t, r, sync_, &forever{h: h, name: "A"}, &forever{h: h, name: "B"})
			r.Shutdown(terms(row.policy))
			cut := requireCut(t, r.Run())
			require.Equal(t, row.want, h.take())
			require.Equal(t, row.left, names(cut))
			require.Equal(t, 2, cut.Tasks)
			require.Equal(t, row.policy.Drop, cut.Dropped)

			n := 0
			schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
				r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Suspend}))
				n++
				return sync_
			}))
			requireCut(t, r.Run())
			require.Equal(t, 1, n)
			require.Equal(t, row.again, h.take(), "in their order")
		})
	}
}

func TestABoundInTimeEndsWaitingTasklets(t *testing.T) {
	r, _ := virtual()
	h := &history{}
	schedule(t, r, wait, told{h.play("W")})
	schedule(t, r, sync_, waits())
	r.Shutdown(terms(shutdown.Policy{Time: time.Second, Turns: 1}))
	var cut *shutdown.Cut
	servertest.InTime(t, func() { cut = requireCut(t, r.Run()) })
	require.Equal(t, sorted("W waiting "), sorted(names(cut)))
	require.Equal(t, "(W)", h.take())
	schedule(t, r, sync_, h.play("B"))
	r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halt}))
	require.Equal(t, sorted("B W waiting "), sorted(names(requireCut(t, r.Run()))), "they are kept")
}

// After a halt the next Run goes on where it was: members are queued and wait as before, and what an ASYNC phase has
// answered meanwhile counts.
func TestAHaltedRunIsRunAgain(t *testing.T) {
	for name, answer := range map[string]tasklet.Directive{"SYNC": sync_, "ASYNC": async, "WAIT": wait, "DONE": done} {
		t.Run(name, func(t *testing.T) {
			r, h := tasklet.NewRunner(act.Config{}), &history{}
			in, out := make(chan bool), make(chan bool)
			phase := 0
			x := &phases{"X", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				switch phase++; phase {
				case 1:
					return async
				case 2:
					in <- true
					<-out
					return answer
				}
				h.note("x")
				return done
			}}
			right := r.Suspend(h.play("W"))
			schedule(t, r, sync_, x)
			go func() { <-in; r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halt})) }()
			var cut *shutdown.Cut
			servertest.InTime(t, func() { cut = requireCut(t, r.Run()) })
			require.Equal(t, 2, cut.Tasks)
			require.Equal(t, 1, cut.Offloads)
			schedule(t, r, sync_, h.play("Q"))
			close(out)
			require.NoError(t, right.Resume(sync_))
			if answer == wait {
				require.Eventually(t, func() bool { return tasklet.With(r, x) == nil }, servertest.Timeout, time.Millisecond)
			}
			servertest.InTime(t, func() { require.NoError(t, r.Run()) })
			got := h.take()
			require.Equal(t, "QW", strings.ReplaceAll(got, "x", ""))
			require.Equal(t, answer != done, len(got) == 3, got)
		})
	}
}
