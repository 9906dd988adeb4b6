package inspect

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// waiter waits, and says what for.
type waiter struct {
	what  string
	waker act.Waker
}

func (w *waiter) Act(t *act.Task) act.Directive {
	w.waker = t.Waker()
	return act.Wait
}
func (w *waiter) Describe(d *act.Description) { d.WaitsFor(w.what) }

// asked returns the answer of the only desk of x, which has to come in one Step after another.
func asked(t *testing.T, s *act.Scheduler, x *Inspector, tasks bool) *scheduler {
	q := x.desks[0].ask(tasks)
	step(t, s)
	require.True(t, q.wait(t.Context()), "no answer")
	return q.scheduler()
}

func TestTasksAreDescribed(t *testing.T) {
	s, x, c := inspected(t)
	s.Spawn(&waiter{what: "a letter"})
	var tm act.Timer
	s.Spawn(&act.Child{Action: act.Func(func(t *act.Task) act.Directive {
		t.WakeAfter(&tm, 3*time.Second)
		return act.Wait
	})})
	step(t, s)
	c.now += time.Second
	all := asked(t, s, x, true).tasks
	require.Len(t, all, 3, "the desk is one of them")
	require.True(t, all[0].Demon)
	require.Equal(t, "inspect", all[0].Name)
	letter := task{
		ID: 2, Name: "*inspect.waiter", Kind: "*inspect.waiter", State: "waiting", Age: time.Second, Since: time.Second,
		Waits: []string{"a letter"}, turns: 1,
	}
	require.Equal(t, letter, all[1])
	require.Equal(t, []string{"a timer due in 2s"}, all[2].Waits)
	require.Empty(t, asked(t, s, x, false).tasks)
}

// restless is a waiter that waits for nothing.
type restless struct{ waiter }

func (*restless) Act(*act.Task) act.Directive { return act.Yield }

func TestATaskThatIsReadyWaitsForNothing(t *testing.T) {
	s, x, _ := inspected(t)
	s.Spawn(&restless{waiter{what: "a letter"}})
	q := x.desks[0].ask(true)
	_, err := s.Step(1000)
	require.NoError(t, err)
	require.True(t, q.wait(t.Context()))
	all := q.scheduler().tasks
	require.Equal(t, "ready", all[1].State)
	require.Empty(t, all[1].Waits)
}

// An order to end is a thing to wait for: it is shown with its terms, and each task says whether it was told.
func TestAnOrderIsInTheReport(t *testing.T) {
	s, x, c := inspected(t)
	s.Spawn(&waiter{what: "a letter"})
	step(t, s)
	r := asked(t, s, x, true)
	require.Nil(t, r.Ends)
	require.False(t, r.tasks[1].Told)

	s.Shutdown(shutdown.Policy{Time: 10 * time.Second, Drop: true})
	step(t, s)
	c.now += 3 * time.Second
	s.Shutdown(shutdown.Policy{Time: 5 * time.Second, Drop: true})
	step(t, s)
	c.now += time.Second
	r = asked(t, s, x, true)
	require.Equal(t, "ending for 4s: drain, 5s, then drop; terms: drain, 5s, then drop; 4s are left", r.Ends.String(), "since the first one")
	require.True(t, r.tasks[1].Told)
	require.Equal(t, "waiting, told to end", r.tasks[1].state())
	require.Equal(t, "told to end, waits for a letter", r.tasks[1].reason())

	c.now += 5 * time.Second
	_, err := s.Step(100)
	require.ErrorContains(t, err, "dropped 1 task")
	require.Nil(t, reported(s).Ends, "it is spent")
}

// ticking is a clock on which time passes whenever it is read.
type ticking struct{ clock }

func (c *ticking) Monotonic() time.Duration {
	c.now += slice / 2
	return c.now
}

// A question about many tasks is answered in turns of a slice each, between which others have theirs, and sees each task that
// was there all the time, and others come and go.
func TestManyTasksAreVisitedInSlices(t *testing.T) {
	x, c := &Inspector{}, &ticking{}
	cfg := act.Config{Clock: c}
	x.Configure(&cfg)
	s := act.New(cfg)
	defer s.Close()
	s.Internals().SetIdler(c)
	require.NoError(t, x.Setup(s))
	const many = 1000
	for i := range many {
		s.Spawn(&waiter{what: strconv.Itoa(i)})
	}
	step(t, s)
	coming := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive { // spawns and ends tasks until the question is answered
		if x.desks[0].pending.Load() == nil {
			return act.Done
		}
		coming++
		s.Spawn(act.Func(func(*act.Task) act.Directive { return act.Done }))
		return act.Yield
	}))
	q := x.desks[0].ask(true) // with room for fewer than there are
	step(t, s)
	require.True(t, q.wait(t.Context()))
	seen := map[string]int{}
	for _, task := range q.scheduler().tasks {
		if len(task.Waits) == 1 {
			seen[task.Waits[0]]++
		}
	}
	for i := range many {
		require.Equal(t, 1, seen[strconv.Itoa(i)], i)
	}
	require.GreaterOrEqual(t, coming, many/100, "others had their turns meanwhile")
}

// crowd is a value of a Local that lists processes.
type crowd struct{ next, of int }

func (x *crowd) List(again bool, visit func(any) bool) bool {
	if again {
		x.next = 0
	}
	for x.next < x.of {
		x.next++
		if !visit(&facts.Process{ID: uint64(x.next)}) {
			return true
		}
	}
	return false
}

func (x *crowd) Counts(add func(string, uint64)) { add("crowd", uint64(x.of)) }

func TestListsAreAskedToTheirEnds(t *testing.T) {
	s, x, _ := inspected(t)
	s.Spawn(&waiter{what: "the end"}) // a desk alone does not keep a scheduler going
	for _, n := range []int{0, 1, 16, 17, 80} {
		act.NewLocal(func(*act.Scheduler) *crowd { return &crowd{of: n} }).Get(s)
	}
	for range 2 {
		report := asked(t, s, x, true)
		require.Len(t, report.processes, 114)
		require.EqualValues(t, 114, report.Counts["crowd"])
	}
	require.Empty(t, asked(t, s, x, false).processes)
}

// Memory for an answer is allocated by the goroutine that asks. With more connections the scheduler allocates no more,
// whether for what they serve, for how long they wait, or for their peers.
func TestADeskDescribesConnectionsWithoutAllocations(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	web := &httpd.Server{Handler: func(*httpd.Response, *httpd.Request) act.Action { return nil }}
	for name, handler := range map[string]func(*listener.Conn) act.Action{
		"waits": func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				_, err := c.Peek(1)
				return listener.Next(t, err)
			})
		},
		"httpd": web.Serve,
		"coro":  coro.Serve(func(c *coro.Conn) error { _, err := c.Read(make([]byte, 1)); return err }),
	} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // for the coroutines; the goroutine ends with its thread
			x, cfg := &Inspector{Watch: Watch{Limit: -1}}, act.Config{}
			x.Configure(&cfg)
			l := servertest.New(t, cfg)
			require.NoError(t, x.Setup(l.S))
			tcp := &service.Listener{Address: "127.0.0.1:0", Handler: handler}
			require.NoError(t, tcp.Setup(l.S))
			var q *question
			ask := func() {
				q = x.desks[0].ask(true)
				for x.desks[0].pending.Load() == q {
					if _, err := l.S.Step(100); err != nil {
						panic(err)
					}
				}
			}
			var few float64
			for _, n := range []int{1, 20} {
				for range n {
					_ = servertest.Dial(t, tcp.Addr())
				}
				all := 0
				l.Until("all wait", func() bool {
					ask()
					all = 0
					for _, task := range q.scheduler().tasks {
						if task.Kind == "tcp "+tcp.Addr().String() && strings.Contains(task.waits(), "input from "+task.Peer) {
							all++
						}
					}
					return all == n || all == 21 // with the first one
				})
				allocs := testing.AllocsPerRun(10, ask)
				if n == 1 {
					few = allocs
				}
				require.Equal(t, few, allocs, "%d connections", all)
			}
		})
	}
}

// running starts a Group of n schedulers that are inspected, and returns a function that ends it.
func running(t testing.TB, n int) *Inspector {
	x := &Inspector{}
	runs(t, x, act.Config{Schedulers: n})
	return x
}

// runs starts a Group that x inspects until the test ends.
func runs(t testing.TB, x *Inspector, cfg act.Config) {
	t.Cleanup(startRun(t, x, cfg))
}

// startRun starts a Group that x inspects, and returns a function that ends it.
func startRun(t testing.TB, x *Inspector, cfg act.Config, setup ...func(*act.Scheduler) error) (end func()) {
	n := cfg.Schedulers
	cfg.Shutdown = shutdown.Policy{Kind: shutdown.Halt, Drop: true}
	x.Configure(&cfg)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	ready := make(chan struct{}, n)
	forever := func(s *act.Scheduler) error {
		s.Spawn(&waiter{what: "the end"})
		ready <- struct{}{}
		return nil
	}
	setup = append([]func(*act.Scheduler) error{x.Setup, forever}, setup...)
	go func() { over <- act.Run(ctx, cfg, setup...) }()
	for range n {
		<-ready
	}
	return func() {
		cancel()
		<-over
		require.NoError(t, x.Close())
	}
}

// censused asks until all schedulers have answered in time, and stops the clock, so that all viewers get this answer.
func censused(t *testing.T, x *Inspector) (r *report) {
	require.Eventually(t, func() bool {
		x.mu.Lock()
		x.given, x.clock = nil, &clock{}
		x.mu.Unlock()
		r = x.report(true, false)
		return !slices.ContainsFunc(r.Schedulers, func(s *scheduler) bool { return s.Late > 0 || len(s.tasks) == 0 })
	}, servertest.Timeout, time.Millisecond)
	return r
}

func TestViewersShareAReport(t *testing.T) {
	x := running(t, 2)
	r := censused(t, x)
	require.NotEmpty(t, r.Schedulers[1].tasks)
	require.Same(t, r, x.report(true, false))
	require.Same(t, r, x.report(false, false))
	x.clock.(*clock).now += fresh - 1
	require.Same(t, r, x.report(true, false))
	x.clock.(*clock).now++
	require.NotSame(t, r, x.report(true, false))
}

// What was broken: a Report with tasks had none if a question without them was still open.
func TestAReportWithTasksDoesNotTakeAnAnswerWithoutThem(t *testing.T) {
	x := running(t, 1)
	censused(t, x)
	stuck, free := make(chan struct{}), make(chan struct{})
	require.NoError(t, x.desks[0].probe.s.Post(func(*act.Scheduler) {
		close(stuck)
		<-free
	}))
	<-stuck
	x.desks[0].ask(false)
	x.mu.Lock()
	x.given = nil
	x.mu.Unlock()
	report := make(chan *report)
	go func() { report <- x.report(true, false) }()
	for x.mu.TryLock() { // until the Report asks
		x.mu.Unlock()
	}
	close(free)
	require.NotEmpty(t, (<-report).Schedulers[0].tasks)
}

// What was broken: an answer that came too late was dropped, so a busy scheduler was shown as it had been long before.
func TestALateAnswerIsShownNextTime(t *testing.T) {
	x := running(t, 2)
	require.NotEmpty(t, censused(t, x).Schedulers[1].tasks)
	late := func() *report {
		stuck, free := make(chan struct{}), make(chan struct{})
		require.NoError(t, x.desks[1].probe.s.Post(func(*act.Scheduler) {
			close(stuck)
			<-free
		}))
		defer close(free)
		<-stuck
		x.clock.(*clock).now += fresh
		r := x.report(true, false)
		require.Equal(t, "in a pass", r.Schedulers[1].State)
		require.NotZero(t, r.Schedulers[1].Late)
		require.NotEmpty(t, r.Schedulers[1].tasks, "those of the answer before")
		require.Empty(t, x.snapshot().Schedulers[1].tasks, "nobody has asked for them")
		return r
	}
	first := late()
	require.Eventually(t, func() bool { return x.desks[1].pending.Load() == nil }, servertest.Timeout, time.Millisecond)
	require.Greater(t, late().Schedulers[1].Uptime, first.Schedulers[1].Uptime)
}

// A Group may run again: a scheduler keeps its desk, and the counts go on.
func TestAGroupThatIsRunAgainIsInspectedOnce(t *testing.T) {
	x := &Inspector{}
	cfg := act.Config{Schedulers: 1}
	x.Configure(&cfg)
	defer x.Close()
	g := act.NewGroup(cfg)
	defer g.Close()
	for run := range 2 {
		require.NoError(t, g.Run(context.Background(), x.Setup, func(s *act.Scheduler) error {
			q := x.desks[0].ask(true)
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				select {
				case <-q.answer:
					answer := q.scheduler()
					require.Len(t, answer.tasks, 2, "this task and the desk")
					require.EqualValues(t, run+1, kindNamed(t, answer, answer.tasks[1].Kind).Spawned)
					return act.Done
				default:
					return act.Yield
				}
			}))
			return nil
		}))
	}
	require.Len(t, x.desks, 1)
}
