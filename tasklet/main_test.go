package tasklet_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	sync_ = tasklet.Sync
	async = tasklet.Async
	wait  = tasklet.Wait
	done  = tasklet.Done
)

// history records events in order. Any goroutine may use it.
type history struct {
	mu sync.Mutex
	b  strings.Builder
}

func (h *history) note(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b.WriteString(s)
}

func (h *history) count(s string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.b.String(), s)
}

// take returns the history so far and begins a new one.
func (h *history) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.b.Reset()
	return h.b.String()
}

// script is a tasklet that records its name in each phase and gives one answer after the other, then Done.
type script struct {
	h       *history
	name    string
	answers []tasklet.Directive
}

func (p *script) String() string { return p.name }

func (p *script) Task(*tasklet.Runner) tasklet.Directive {
	p.h.note(p.name)
	if len(p.answers) == 0 {
		return done
	}
	d := p.answers[0]
	p.answers = p.answers[1:]
	return d
}

// play returns a script.
func (h *history) play(name string, answers ...tasklet.Directive) *script {
	return &script{h, name, answers}
}

// phases is a tasklet with a name that calls f.
type phases struct {
	name string
	f    func(t tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive
}

func (p *phases) String() string { return p.name }

func (p *phases) Task(r *tasklet.Runner) tasklet.Directive { return p.f(p, r) }

// told is a script that records its orders.
type told struct{ *script }

func (p told) Stop(_ *act.Task, _ shutdown.Order) { p.h.note("(" + p.name + ")") }

// observed returns a scheduler and the logs of its act.Schedulers.
func observed(cfg act.Config) (*tasklet.Runner, *observer.ObservedLogs) {
	c, logs := watched(cfg)
	return tasklet.NewRunner(c), logs
}

func watched(cfg act.Config) (act.Config, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	cfg.Logger = zap.New(core)
	return cfg, logs
}

// leap is a clock on which to sleep takes no time, and an Idler for it.
type leap struct{ now time.Duration }

func (l *leap) Monotonic() time.Duration  { return l.now }
func (l *leap) Wall() time.Time           { return time.Unix(0, int64(l.now)) }
func (l *leap) Idle(atMost time.Duration) { l.now += max(atMost, 0) }
func (*leap) Interrupt()                  {}

// virtual returns a runner on such a clock.
func virtual() (*tasklet.Runner, *leap) {
	l := &leap{}
	return tasklet.NewRunner(act.Config{Clock: l, Idle: func(*act.Scheduler, facts.Idler) facts.Idler { return l }}), l
}

func schedule(t testing.TB, r *tasklet.Runner, d tasklet.Directive, all ...tasklet.Tasklet) {
	t.Helper()
	for _, x := range all {
		require.NoError(t, r.Schedule(x, d))
	}
}

// terms returns an order with these terms.
func terms(p shutdown.Policy) shutdown.Order { return p }

// failed returns the names of the tasklets whose failure was reported.
func failed(logs *observer.ObservedLogs) (names []string) {
	for _, e := range logs.FilterMessage("a task failed").All() {
		names = append(names, e.ContextMap()["task"].(string))
	}
	slices.Sort(names)
	return names
}

// sorted is for events in no particular order.
func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

// waiting is a tasklet that keeps Run from returning until it is resumed with Done.
type waiting struct{ _ byte }

func waits() tasklet.Tasklet { return &waiting{} }

func (*waiting) Task(*tasklet.Runner) tasklet.Directive { return tasklet.Wait }

func (*waiting) String() string { return "waiting" }
