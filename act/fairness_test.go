package act_test

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// load is a random program on a virtual clock. Time passes in turns and in the parts of a pass, none longer than allowed;
// the program keeps its own record of what is ready, and asserts the promises from them.
type load struct {
	t   *testing.T
	rnd *rand.Rand
	c   *clock
	s   *act.Scheduler

	// The bounds of what things cost, and of a pass as a whole.
	turn, demon, post, look, pass time.Duration

	tasks    map[*act.Task]*loadTask
	waiting  []*loadTask // all that have ever waited; some have gone on
	ready    int         // tasks
	demons   int         // demons that are ready
	sleeping []act.Waker // of the demons that are not
	posts    int
	kernel   []event // in no order
	turns    int
	limit    int // of turns; then all end

	woken, events, sleeps int // what the load has seen
	tightest              float64
}

type loadTask struct {
	waker  act.Waker
	latest time.Duration // it must begin by then
	since  time.Duration
	timer  act.Timer
	armed  bool
}

// event is something that the operating system will report.
type event struct {
	at    time.Duration
	waker act.Waker
}

func newLoad(t *testing.T, seed int64) *load {
	rnd := rand.New(rand.NewSource(seed))
	l := &load{
		t: t, rnd: rnd, c: &clock{}, tasks: map[*act.Task]*loadTask{},
		turn: time.Duration(1 + rnd.Intn(1000)), demon: time.Duration(1 + rnd.Intn(2000)),
		post: time.Duration(1 + rnd.Intn(100)), look: time.Duration(1 + rnd.Intn(500)),
		limit: 20_000,
	}
	demons := rnd.Intn(4)
	l.pass = time.Duration(demons)*l.demon + act.PostsAPass*l.post + l.look
	l.s, _ = newScheduler(t, act.Config{Clock: l.c, Trace: &act.Trace{
		Spawned: func(t *act.Task) {
			if _, ok := t.Action().(*demon); !ok {
				l.becameReady(l.of(t))
			}
		},
		Woken: l.wokenBy,
		Ended: func(t *act.Task, _ error) { delete(l.tasks, t) },
	}})
	l.s.Internals().SetIdler(l)
	for range 1 + rnd.Intn(1<<rnd.Intn(9)) {
		l.s.Spawn(act.Func(l.act))
	}
	for range demons {
		l.demons++
		l.s.Install(&demon{act: l.demonAct})
	}
	return l
}

func (l *load) of(t *act.Task) *loadTask {
	if l.tasks[t] == nil {
		l.tasks[t] = &loadTask{}
	}
	return l.tasks[t]
}

// spend lets time pass, as much as allowed in one of four cases.
func (l *load) spend(most time.Duration) {
	if l.rnd.Intn(4) > 0 {
		most = time.Duration(l.rnd.Int63n(int64(most) + 1))
	}
	l.c.advance(most)
}

// becameReady is the promise: with n ready it begins within n·b + (1+n/64)·p.
func (l *load) becameReady(b *loadTask) {
	l.ready++
	n := time.Duration(l.ready)
	b.since = l.c.Monotonic()
	b.latest = b.since + n*l.turn + (1+n/64)*l.pass
}

func (l *load) wokenBy(t *act.Task) {
	if _, ok := t.Action().(*demon); ok {
		l.demons++
		return
	}
	l.woken++
	b := l.of(t)
	if b.armed && !b.timer.Armed() { // by its timer: not early, and not late
		late := l.c.Monotonic() - b.timer.When()
		l.holds(late >= 0, "a timer came too early")
		l.holds(late <= 64*l.turn+l.pass, "a timer came too late")
		b.armed = false
	}
	l.becameReady(b)
}

// act is a turn of a task.
func (l *load) act(t *act.Task) act.Directive {
	b := l.of(t)
	l.ready--
	l.holds(l.c.Monotonic() <= b.latest, "a turn began too late")
	if allowed := b.latest - b.since; allowed > 0 {
		l.tightest = max(l.tightest, float64(l.c.Monotonic()-b.since)/float64(allowed))
	}
	d := l.play(t, b)
	if d == act.Yield {
		l.becameReady(b)
	}
	return d
}

func (l *load) play(t *act.Task, b *loadTask) act.Directive {
	defer l.spend(l.turn / 2)
	l.spend(l.turn / 2)
	if l.turns++; l.turns > l.limit {
		return act.Done
	}
	b.waker = t.Waker()
	for range l.rnd.Intn(3) {
		l.meddle()
	}
	switch l.rnd.Intn(12) {
	case 0, 1, 2, 3:
		return act.Yield
	case 4:
		l.s.Spawn(act.Func(l.act))
		return act.Done
	case 5, 6:
		b.armed = true
		t.WakeAt(&b.timer, l.c.Monotonic()+time.Duration(l.rnd.Int63n(1<<l.rnd.Intn(24))))
	case 7:
		b.waker.Wake()
	case 8, 9:
		l.kernel = append(l.kernel, event{l.c.Monotonic() + time.Duration(l.rnd.Int63n(1<<l.rnd.Intn(22))), b.waker})
	default:
		l.waiting = append(l.waiting, b)
	}
	return act.Wait
}

// meddle does something that another task notices.
func (l *load) meddle() {
	switch l.rnd.Intn(3) {
	case 0:
		if l.s.Post(l.posted) == nil {
			l.posts++
		}
	case 1:
		if n := len(l.sleeping); n > 0 {
			l.sleeping[n-1].Wake()
			l.sleeping = l.sleeping[:n-1]
		}
	default:
		if n := len(l.waiting); n > 0 {
			l.waiting[n-1].waker.Wake()
			l.waiting = l.waiting[:n-1]
		}
	}
}

func (l *load) posted(*act.Scheduler) {
	l.posts--
	if l.rnd.Intn(2) == 0 {
		l.meddle()
	}
	l.spend(l.post)
}

func (l *load) demonAct(t *act.Task) act.Directive {
	l.demons--
	l.meddle()
	l.spend(l.demon)
	switch {
	case l.turns > l.limit:
		return act.Done
	case l.rnd.Intn(3) == 0:
		l.sleeping = append(l.sleeping, t.Waker())
		return act.Wait
	}
	l.demons++
	return act.Yield
}

// Idle delivers events within 64·b + p of their happening, and asserts that it may sleep.
func (l *load) Idle(atMost time.Duration) {
	if atMost != 0 {
		l.mayItSleep(atMost)
		l.sleep(atMost)
	}
	l.spend(l.look)
	now := l.c.Monotonic()
	later := l.kernel[:0]
	for _, e := range l.kernel {
		if e.at > now {
			later = append(later, e)
			continue
		}
		l.holds(now-e.at <= 64*l.turn+l.pass, "an event was seen too late")
		l.events++
		e.waker.Wake()
	}
	l.kernel = later
	if l.turns > l.limit || l.ready+l.demons == 0 { // a task that waits for nothing else
		for len(l.waiting) > 0 {
			l.waiting[0].waker.Wake()
			l.waiting = l.waiting[1:]
		}
		for len(l.sleeping) > 0 {
			l.sleeping[0].Wake()
			l.sleeping = l.sleeping[1:]
		}
	}
}

func (l *load) Interrupt() {}

// mayItSleep is the promise never to sleep while anything is runnable or due.
func (l *load) mayItSleep(atMost time.Duration) {
	l.sleeps++
	l.holds(l.ready == 0, "asleep while a task is ready")
	l.holds(l.demons == 0, "asleep while a demon is ready")
	l.holds(l.posts == 0, "asleep while a function is posted")
	for _, b := range l.tasks {
		if b.timer.Armed() {
			l.holds(atMost > 0, "asleep for ever, with a deadline")
			l.holds(atMost <= b.timer.When()-l.c.Monotonic(), "asleep beyond a deadline")
		}
	}
}

// holds is cheaper than what require has, and called millions of times.
func (l *load) holds(promise bool, broken string) {
	if !promise {
		require.FailNow(l.t, broken, "after %d turns, at %v", l.turns, l.c.Monotonic())
	}
}

// sleep lets time pass until the first event or the end of the sleep. One without either lasts no time:
// otherwise a task was woken by nothing, or the load is at a dead end.
func (l *load) sleep(atMost time.Duration) {
	now := l.c.Monotonic()
	until := time.Duration(math.MaxInt64)
	if atMost > 0 {
		until = now + atMost
	}
	for _, e := range l.kernel {
		until = min(until, e.at)
	}
	if until > now && until < math.MaxInt64 {
		l.c.advance(until - now)
	}
}

func TestThePromisesOverRandomLoads(t *testing.T) {
	woken, events, sleeps, tightest := 0, 0, 0, 0.0
	for seed := range tier.Choose[int64](10, 10, 400) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			l := newLoad(t, seed)
			require.NoError(t, l.s.Run())
			require.Greater(t, l.turns, l.limit)
			require.Empty(t, l.tasks)
			woken, events, sleeps = woken+l.woken, events+l.events, sleeps+l.sleeps
			tightest = max(tightest, l.tightest)
		})
	}
	t.Logf("%d wake-ups, %d events, %d sleeps, at most %.0f %% of the bound", woken, events, sleeps, 100*tightest)
	require.Greater(t, woken, 10_000)
	require.Greater(t, events, 1000)
	require.Greater(t, sleeps, 1000)
	require.Greater(t, tightest, 0.5, "loads that come nowhere near the bound would not test it")
}
