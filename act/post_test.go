package act_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestAFullInboxMakesAPlainGoroutineWaitForRoom(t *testing.T) {
	const room = 4
	s, _ := newScheduler(t, act.Config{Inbox: room})
	var order []int
	for i := range room {
		require.NoError(t, s.Post(func(*act.Scheduler) { order = append(order, i) }))
	}
	posted := make(chan error)
	go func() { posted <- s.Post(func(*act.Scheduler) { order = append(order, room) }) }()
	_, err := s.Step(1) // makes room, if it waits by now
	require.NoError(t, err)
	servertest.InTime(t, func() { require.NoError(t, <-posted) })
	require.NoError(t, s.Run())
	require.Equal(t, []int{0, 1, 2, 3, 4}, order)
}

func TestAFullInboxRefusesTheThreadsOfSchedulers(t *testing.T) {
	a, _ := newScheduler(t, act.Config{Inbox: 2})
	b, _ := newScheduler(t, act.Config{})
	nothing := func(*act.Scheduler) {}
	var own, siblings []error
	a.Spawn(act.Func(func(*act.Task) act.Directive {
		own = append(own, a.Post(nothing), a.Post(nothing), a.Post(nothing))
		return act.Done
	}))
	b.Spawn(act.Func(func(*act.Task) act.Directive {
		siblings = append(siblings, a.Post(nothing), a.Post(nothing), a.Post(nothing))
		return act.Done
	}))
	servertest.InTime(t, func() { require.NoError(t, a.Run()) })
	servertest.InTime(t, func() { require.NoError(t, b.Run()) })
	for _, errs := range [][]error{own, siblings} {
		require.Equal(t, []error{nil, nil}, errs[:2])
		require.Implements(t, (*act.Blocked)(nil), errs[2])
		require.EqualError(t, errs[2], "act: the inbox of scheduler 0 is full")
	}
	require.NoError(t, a.Run())
}

// poster posts n functions and waits while there is no room.
type poster struct {
	post     func(func(*act.Scheduler)) error
	n, turns int
}

func (p *poster) Act(t *act.Task) act.Directive {
	p.turns++
	for p.n > 0 {
		switch err := p.post(func(*act.Scheduler) {}).(type) {
		case nil:
			p.n--
		case act.Blocked:
			err.Arm(t)
			return act.Wait
		default:
			return t.Fail(err)
		}
	}
	return act.Done
}

// Another thread may empty the inbox between the refusal and Arm.
func TestATaskThatArmsAFullInboxWhenItHasRoomAgainIsWoken(t *testing.T) {
	there, _ := newScheduler(t, act.Config{Inbox: 1})
	here, _ := newScheduler(t, act.Config{})
	turns := 0
	here.Spawn(act.Func(func(task *act.Task) act.Directive {
		if turns++; turns == 2 {
			return act.Done
		}
		var err error
		for err == nil {
			err = there.Post(func(*act.Scheduler) {})
		}
		require.NoError(panicking{}, there.Run())
		err.(act.Blocked).Arm(task)
		return act.Wait
	}))
	_, err := here.Step(2)
	require.NoError(t, err)
	require.Equal(t, 2, turns)
}

func TestATaskThatWaitsForRoomIsWokenByClose(t *testing.T) {
	full, _ := newScheduler(t, act.Config{Inbox: 1})
	s, _ := newScheduler(t, act.Config{})
	p := &poster{post: full.Post, n: 3}
	s.Spawn(p)
	_, err := s.Step(10)
	require.NoError(t, err)
	require.False(t, s.Finished())
	require.NoError(t, full.Close())
	core, _ := s.Step(10)
	require.Equal(t, 1, core)
	require.True(t, s.Finished(), "it has failed with ErrClosed")
}

func TestPostOfNilPanics(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 1})
	require.PanicsWithValue(t, "act: Post of a nil function", func() { _ = g.Schedulers()[0].Post(nil) })
	require.PanicsWithValue(t, "act: Broadcast of a nil function", func() { _ = g.Broadcast(nil) })
}

func TestAClosedInboxRefuses(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Inbox: 1})
	require.NoError(t, s.Post(func(*act.Scheduler) { panic("runs after all") }))
	waited := make(chan error)
	go func() { waited <- s.Post(func(*act.Scheduler) {}) }()
	require.NoError(t, s.Close())
	servertest.InTime(t, func() { require.ErrorIs(t, <-waited, act.ErrClosed, "a goroutine that waits for room") })
	require.ErrorIs(t, s.Post(func(*act.Scheduler) {}), act.ErrClosed)
}

// What is to be done while posts wait is due now: an embedding loop must not sleep.
func TestPendingPostsAreDue(t *testing.T) {
	s, c, _ := newVirtual(t, act.Config{})
	c.Pass(time.Minute)
	ran := 0
	for range act.PostsAPass + 1 {
		s.Post(func(*act.Scheduler) { ran++ })
	}
	taken, err := s.Step(10)
	require.NoError(t, err)
	require.Zero(t, taken)
	require.Equal(t, act.PostsAPass, ran)
	when, due := s.NextDeadline()
	require.True(t, due)
	require.Equal(t, c.Monotonic(), when)
	_, err = s.Step(10)
	require.NoError(t, err)
	require.Equal(t, act.PostsAPass+1, ran)
	_, due = s.NextDeadline()
	require.False(t, due)
}

// disturbed is an Idler: in each sleep another goroutine does something.
type disturbed struct {
	disturb            func()
	sleeps, interrupts int
}

func (i *disturbed) Idle(atMost time.Duration) {
	if atMost == 0 {
		return
	}
	i.sleeps++
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.disturb()
	}()
	<-done
}

func (i *disturbed) Interrupt() { i.interrupts++ }

// One write, however many come.
func TestAThreadAsleepIsInterruptedOnce(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	s.Internals().KeepRunning(1)
	i := &disturbed{}
	i.disturb = func() {
		for range 100 {
			s.Post(func(*act.Scheduler) {})
		}
		if i.sleeps == 5 {
			s.Post(func(s *act.Scheduler) { s.Internals().KeepRunning(-1) })
		}
	}
	s.Internals().SetIdler(i)
	require.NoError(t, s.Run())
	require.Equal(t, 5, i.sleeps, "none with a post in the inbox")
	require.Equal(t, 5, i.interrupts)
}

// The thread has found its inbox empty. It reads the clock, says that it sleeps, and then sleeps.
func TestWhatComesBetweenTheLastLookAndTheSleepIsNotLost(t *testing.T) {
	for name, row := range map[string]struct {
		come func(s *act.Scheduler, w func(), h *history)
		want string
	}{
		"a post": {func(s *act.Scheduler, w func(), h *history) {
			s.Post(func(*act.Scheduler) { h.WriteString("p"); w() })
		}, "pwA"},
		"a remote wake-up": {func(_ *act.Scheduler, w func(), _ *history) { w() }, "wA"},
		"an order":         {func(s *act.Scheduler, _ func(), _ *history) { s.Shutdown(halt) }, ""},
	} {
		for moment, early := range map[string]bool{" before it says so": true, " after": false} {
			t.Run(name+moment, func(t *testing.T) {
				var h history
				var s *act.Scheduler
				var w func()
				came, passes, idles := false, 0, 0
				come := func() {
					if came {
						return
					}
					came = true
					done := make(chan struct{})
					go func() { row.come(s, w, &h); close(done) }()
					<-done
				}
				c := &postman{reading: func() {
					if early && passes == 1 {
						come()
					}
				}}
				s, _ = newScheduler(t, act.Config{Clock: c, Trace: &act.Trace{
					Pass: func(*act.Scheduler) { passes++ },
					Idle: func(_ *act.Scheduler, atMost time.Duration) {
						if idles++; atMost != 0 && !early {
							come()
						}
					},
				}})
				s.Internals().SetIdler(c)
				s.Spawn(h.sleeper("A", time.Hour))
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					if came {
						return h.note("w", act.Done)
					}
					w = t.Waker().Remote()
					return act.Wait
				}))
				_ = s.Run() // a Cut under the order
				require.True(t, came)
				require.Equal(t, row.want, h.String(), "before the deadline")
				if name == "an order" {
					require.Zero(t, c.clock.Monotonic())
				} else {
					require.Equal(t, passes, idles, "each pass looks or sleeps, exactly once")
				}
			})
		}
	}
}

// postman is a clock that does something when it is read, and an Idler that sleeps on it unless it is interrupted.
type postman struct {
	clock
	reading     func()
	interrupted bool
}

func (p *postman) Monotonic() time.Duration {
	p.reading()
	return p.clock.Monotonic()
}

func (p *postman) Idle(atMost time.Duration) {
	if atMost > 0 && !p.interrupted {
		p.Pass(atMost)
	}
	p.interrupted = false
}

func (p *postman) Interrupt() { p.interrupted = true }
