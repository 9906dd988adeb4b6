package topic_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/topic"
)

// In each row +x is a TakeOver, =x a Register, and -x a Close. What comes of them is the value of Lookup, and each claim: with ?
// if it waits, ! if it was told of another, and . if it was closed before that.
func TestANameHasOneOwner(t *testing.T) {
	for ops, want := range map[string]string{
		"+a":                "a: a",
		"+a -a":             ": a.",
		"+a +b":             "a: a! b?",
		"+a +b -a":          "b: a! b",
		"+a +b -a -a":       "b: a! b",
		"+a -a +b -a":       "b: a. b",
		"+a +b -b":          "a: a! b.",
		"+a +b -b -a":       ": a! b.",
		"+a +b -b +c -a":    "c: a! b. c",
		"+a +b +c":          "a: a! b! c?",
		"+a +b +c -b":       "a: a! b! c?",
		"+a +b +c -b -a":    "c: a! b! c",
		"+a +b +c -a -b +d": "c: a! b! c! d?",
		"=a":                "a: a",
		"=a =b":             "a: a",
		"=a +b -a =c":       "b: a! b",
	} {
		var names topic.Names[string]
		claims, all := map[string]*topic.Claim[string]{}, []string{}
		for _, op := range strings.Fields(ops) {
			switch id := op[1:]; op[0] {
			case '+':
				claims[id] = names.TakeOver(nil, "name", id)
				all = append(all, id)
			case '-':
				require.NoError(t, claims[id].Close())
			case '=':
				c, err := names.Register(nil, "name", id)
				if c == nil {
					require.ErrorIs(t, err, topic.ErrTaken, ops)
					continue
				}
				claims[id], all = c, append(all, id)
			}
		}
		owner, known := names.Lookup("name")
		require.Equal(t, owner != "", known, ops)
		got := owner + ":"
		for _, id := range all {
			var waits act.Blocked
			got += " " + id
			switch err := claims[id].Acquire(); {
			case errors.As(err, &waits):
				got += "?"
			case err == topic.ErrTaken:
				got += "!"
			case err == topic.ErrClosed:
				got += "."
			}
		}
		require.Equal(t, want, got, ops)
	}
}

// owning is the life of an owner in calls, each of which returns what it would wait for.
type owning struct {
	claim *topic.Claim[string]
	owns  bool
}

// next returns an act.Blocked, or nil at the end of the owner.
func (o *owning) next(log *[]string, name string) error {
	if !o.owns {
		if err := o.claim.Acquire(); err != nil {
			return err
		}
		o.owns = true
		*log = append(*log, name+" owns")
	}
	if err := o.claim.Lost(); err != topic.ErrTaken {
		return err
	}
	*log = append(*log, name+" ends")
	return nil
}

// Each kind of owner takes over from each other kind, and is woken for it.
func TestOwnersOfAllKindsAreTold(t *testing.T) {
	g, sys := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped}), process.New()
	for _, s := range g.Schedulers() {
		require.NoError(t, sys.Setup(s))
	}
	var names topic.Names[string]
	var log, want []string
	kinds := map[string]func(name string){
		"task": func(name string) {
			var o owning
			g.Schedulers()[len(want)%2].Spawn(act.Func(func(t *act.Task) act.Directive {
				if o.claim == nil {
					o.claim = names.TakeOver(t, "name", name)
				}
				err := o.next(&log, name)
				if err == nil {
					return act.Done
				}
				err.(act.Blocked).Arm(t)
				return act.Wait
			}))
		},
		"process": func(name string) {
			var o owning
			process.Spawn(sys, process.Func(func(p *process.Self[int]) act.Directive {
				if o.claim == nil {
					o.claim = names.TakeOver(p, "name", name)
				}
				if o.next(&log, name) == nil {
					return act.Done
				}
				return act.Wait
			}), process.Options{})
		},
	}
	for _, from := range []string{"task", "process"} {
		for _, to := range []string{"task", "process"} {
			for _, kind := range []string{from, to} {
				name := from + " to " + to + ": " + kind
				if len(want) > 0 {
					want = append(want, log[len(log)-1][:len(log[len(log)-1])-len("owns")]+"ends")
				}
				kinds[kind](name)
				stepAll(t, g)
				require.Equal(t, append(want, name+" owns"), log)
				want = append(want, name+" owns")
			}
		}
	}
	c := names.TakeOver(nil, "name", "goroutine")
	defer c.Close()
	stepAll(t, g)
	owning, err := c.AcquireWait(context.Background())
	require.NoError(t, err)
	require.NoError(t, owning.Err())
	next := names.TakeOver(nil, "name", "another")
	require.ErrorIs(t, context.Cause(owning), topic.ErrTaken)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = next.AcquireWait(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, g.Close())
}

// What was awaited comes between the call and Arm.
func TestNoChangeOfAClaimIsMissed(t *testing.T) {
	var names topic.Names[int]
	s := act.NewGroup(act.Config{Schedulers: 1, Threads: act.Stepped}).Schedulers()[0]
	turns := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if turns++; turns == 3 {
			return act.Done
		}
		before := names.TakeOver(nil, "name", 0)
		c := names.TakeOver(t, "name", 1)
		var err error
		if turns == 1 {
			err = c.Acquire()
			_ = before.Close()
		} else {
			err = c.Lost()
			names.TakeOver(nil, "name", 2)
		}
		err.(act.Blocked).Arm(t)
		return act.Wait
	}))
	_, err := s.Step(10)
	require.NoError(t, err)
	require.Equal(t, 3, turns)
	_, known := names.Lookup("name")
	require.True(t, known)
	require.NoError(t, s.Close())
}

// stepAll steps all schedulers until nothing is ready.
func stepAll(t *testing.T, g *act.Group) {
	t.Helper()
	for turns := 1; turns > 0; {
		turns = 0
		for _, s := range g.Schedulers() {
			n, err := s.Step(100)
			require.NoError(t, err)
			turns += n
		}
	}
}

// What was broken: an owner kept what it had closed until its own end.
func TestOwnersForgetWhatTheyHaveClosed(t *testing.T) {
	b, sys := topic.New(topic.Config{}), process.New()
	var names topic.Names[int]
	asked := 0
	closes := func(o interface {
		topic.Owner
		Release(io.Closer) bool
	}) {
		sub, claim := b.Subscribe(o, topic.Options{}), names.TakeOver(o, "name", 0)
		_, _ = sub.Close(), claim.Close()
		require.False(t, o.Release(sub))
		require.False(t, o.Release(claim))
		asked++
	}
	require.NoError(t, act.Run(context.Background(), act.Config{Schedulers: 1}, b.Setup, sys.Setup, func(s *act.Scheduler) error {
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			closes(t)
			return act.Done
		}))
		process.Spawn(sys, process.Func(func(p *process.Self[int]) act.Directive {
			closes(p)
			return act.Done
		}), process.Options{})
		return nil
	}))
	require.Equal(t, 2, asked)
}

// In the goroutines' own order, whatever it is.
func TestGoroutinesTakeANameOverFromEachOther(t *testing.T) {
	var names topic.Names[int]
	var owners atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				c := names.TakeOver(nil, "name", 0)
				if _, err := c.AcquireWait(context.Background()); err == nil {
					if owners.Add(1) != 1 {
						t.Error("two owners")
					}
					runtime.Gosched()
					owners.Add(-1)
				} else if err != topic.ErrTaken {
					t.Error(err)
				}
				_ = c.Close()
			}
		})
	}
	servertest.InTime(t, all.Wait)
	_, owned := names.Lookup("name")
	require.False(t, owned)
}
