package inspect

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

func TestFindings(t *testing.T) {
	load := func(idle ...time.Duration) *report { // of 10 s
		r := &report{}
		for i, d := range idle {
			r.Schedulers = append(r.Schedulers, &scheduler{Index: i, Uptime: time.Minute + 10*time.Second, Idle: idleTime{Asleep: time.Minute + d}})
		}
		return r
	}
	start := &report{Schedulers: []*scheduler{{Uptime: time.Minute, Idle: idleTime{Asleep: time.Minute}}, {Uptime: time.Minute, Idle: idleTime{Asleep: time.Minute}}}}
	tasks := func(all ...task) *report { return &report{Schedulers: []*scheduler{{tasks: all}}} }
	for _, c := range []struct {
		name    string
		now     *report
		finding string // "" if none
	}{
		{"two idle schedulers", load(9*time.Second, 8*time.Second), ""},
		{"two busy ones", load(0, 0), ""},
		{"a busy one beside an idle one", load(0, 9*time.Second),
			"Scheduler 0 works without a pause, and another one is idle most of the time."},
		{"one that does not answer", &report{Schedulers: []*scheduler{{Late: 3 * time.Second, State: "in a pass"}}},
			"Scheduler 0 does not answer: it is in a pass. Its figures are 3s old."},
		{"one that has ended", &report{Schedulers: []*scheduler{{Late: 3 * time.Second, State: "not running"}}}, ""},
		{"a full mailbox", &report{Schedulers: []*scheduler{{processes: []facts.Process{{ID: 7, Kind: "counter", Mailbox: 9, Limit: 9}}}}},
			"The mailbox of process 7 (counter) is full: 9 messages."},
		{"what waits for something", tasks(task{State: "waiting", Since: time.Hour, Waits: []string{"a future"}}), ""},
		{"what waits for nothing", tasks(
			task{ID: 1, Kind: "lost", State: "waiting", Since: time.Minute},
			task{ID: 2, Kind: "lost", State: "waiting", Since: time.Hour},
			task{ID: 3, Kind: "lost", State: "waiting", Since: time.Second},
		), "2 tasks of lost have been waiting for nothing that is known for up to 1h0m0s: 0/2."},
		{"what waits for the end of its peer alone", tasks(
			task{ID: 9, Kind: "tcp", State: "waiting", Since: time.Minute, Peer: "10.0.0.1:2", Waits: []string{"the end of 10.0.0.1:2"}},
			task{ID: 8, Kind: "tcp", State: "waiting", Since: time.Minute, Peer: "10.0.0.1:3", Waits: []string{"a future", "the end of 10.0.0.1:3"}},
			task{ID: 7, Kind: "tcp", State: "waiting", Since: time.Second, Peer: "10.0.0.1:4", Waits: []string{"the end of 10.0.0.1:4"}},
		), "1 task of tcp has been waiting for nothing that is known but the end of its peer for up to 1m0s: 0/9 of 10.0.0.1:2."},
		{"a demon that waits for nothing", tasks(task{ID: 1, Kind: "idle", State: "waiting", Since: time.Hour, Demon: true}), ""},
		{"a peer that does not read", tasks(
			task{ID: 5, Kind: "tcp", State: "waiting", Peer: "10.0.0.1:2", Queued: 9, Stuck: time.Minute, Waits: []string{"room"}},
			task{ID: 6, Kind: "tcp", State: "waiting", Peer: "10.0.0.1:3", Queued: 9, Stuck: time.Second, Waits: []string{"room"}},
		), "1 task of tcp has been connected to a peer that does not read for up to 1m0s: 0/5 of 10.0.0.1:2."},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := c.now.find(start)
			if c.finding == "" {
				require.Empty(t, found)
				return
			}
			require.Equal(t, []string{c.finding}, found)
		})
	}
}

// A page that does not ask for tasks costs as much with many as with few, since they are polled less often.
func TestManyTasksArePolledLessOften(t *testing.T) {
	begun := time.Now()
	for n, rest := range map[int]time.Duration{10: 5 * time.Second, 2500: 5 * time.Second, 15_000: 30 * time.Second} {
		tasks := make([]task, n)
		for i := range tasks {
			tasks[i] = task{ID: uint32(i), Kind: "echo", Waits: []string{"input"}}
		}
		r := &report{Time: begun, Schedulers: []*scheduler{{tasks: tasks}}}
		r.find(nil)
		require.Equal(t, rest, r.seen.rest, "%d tasks", n)
	}
}

// What was broken: only the mean of all tasks of a kind was polled, so one among many that rest was not found, and
// none was named.
func TestATaskThatHasATurnAllTheTimeIsNamed(t *testing.T) {
	s, x, c := inspected(t)
	const kind = "*inspect.moody"
	var all []*moody
	for range 600 {
		m := &moody{}
		all = append(all, m)
		s.Spawn(m)
	}
	var before *report
	found := func(after time.Duration) []string {
		c.now += after
		q := x.desks[0].ask(true)
		for x.desks[0].pending.Load() == q {
			_, err := s.Step(1000)
			require.NoError(t, err)
		}
		r := &report{Time: c.Wall(), Schedulers: []*scheduler{q.scheduler()}}
		r.Findings = r.find(before)
		before = r
		return r.Findings
	}
	turns := func(n int) {
		_, err := s.Step(n)
		require.NoError(t, err)
	}
	require.Empty(t, found(0))
	require.Empty(t, found(time.Second), "all rest")
	all[77].restless = true
	all[77].waker.Wake()
	turns(30_000)
	require.Len(t, found(time.Second), 1)
	require.Regexp(t, `^1 task of `+regexp.QuoteMeta(kind)+` takes up to 3\d{4} turns a second: 0/79, which yields, wakes itself, or has events without a pause\.$`, before.Findings[0])
	all[78].restless = true
	all[78].waker.Wake()
	turns(60_000)
	require.Regexp(t, `^2 tasks of `+regexp.QuoteMeta(kind)+` take up to 3\d{4} turns a second: 0/(79|80), which yields, wakes itself, or has events without a pause\.$`,
		found(time.Second)[0])
}

// moody waits, or yields while it is restless.
type moody struct {
	waker    act.Waker
	restless bool
}

func (x *moody) Act(t *act.Task) act.Directive {
	if x.waker = t.Waker(); x.restless {
		return act.Yield
	}
	return act.Wait
}

func (x *moody) Describe(d *act.Description) { d.WaitsFor("a mood") }

func TestFewFullMailboxesAreNamed(t *testing.T) {
	s := &scheduler{}
	for i := range mostFull + 7 {
		s.processes = append(s.processes, facts.Process{ID: uint64(i), Kind: "counter", Mailbox: 9, Limit: 9})
	}
	found := (&report{Schedulers: []*scheduler{s}}).find(&report{})
	require.Len(t, found, mostFull+1)
	require.Equal(t, "7 more mailboxes are full.", found[mostFull])
}
