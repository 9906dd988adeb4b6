package act_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// history is the order in which things happened, a letter each.
type history struct{ strings.Builder }

// note appends a letter and returns d.
func (h *history) note(letter string, d act.Directive) act.Directive {
	h.WriteString(letter)
	return d
}

// script is a task of so many turns: each appends its letter, and all but the last answer between.
func (h *history) script(letter string, turns int, between act.Directive) act.Func {
	return func(*act.Task) act.Directive {
		turns--
		if turns == 0 {
			return h.note(letter, act.Done)
		}
		return h.note(letter, between)
	}
}

// waiter is a script that lets m wake it after each turn.
func (h *history) waiter(letter string, turns int, m *monitor) act.Func {
	play := h.script(letter, turns, act.Wait)
	return func(t *act.Task) act.Directive {
		d := play(t)
		if d == act.Wait {
			m.register(t)
		}
		return d
	}
}

// take returns the history so far and begins a new one.
func (h *history) take() string {
	defer h.Reset()
	return h.String()
}

// monitor is a simple monitor: in each turn it wakes all tasks that have registered since the last. Use attach.
type monitor struct {
	waiting []act.Waker
	self    act.Waker
}

func attach(s *act.Scheduler) *monitor {
	m := &monitor{}
	s.Attach(m)
	return m
}

func (m *monitor) register(t *act.Task) {
	m.waiting = append(m.waiting, t.Waker())
	m.self.Wake()
}

func (m *monitor) Act(t *act.Task) act.Directive {
	for _, w := range m.waiting {
		w.Wake()
	}
	m.waiting = m.waiting[:0]
	m.self = t.Waker()
	return act.Wait
}

func (m *monitor) Stop(*act.Task, shutdown.Order) {}

// demon is a Demon made of functions. A nil stop makes it Done in its next turn after an order.
type demon struct {
	act  act.Func
	stop func(t *act.Task, o shutdown.Order)
	told bool
}

func (d *demon) Act(t *act.Task) act.Directive {
	if d.told && d.stop == nil {
		return act.Done
	}
	return d.act(t)
}

func (d *demon) Stop(t *act.Task, o shutdown.Order) {
	d.told = true
	if d.stop != nil {
		d.stop(t, o)
	}
}

// closer is an io.Closer made of a function.
type closer struct{ close func() error }

func (c *closer) Close() error { return c.close() }

// turnEnd is an argument of AtTurnEnd made of a function.
type turnEnd func()

func (f turnEnd) TurnEnd() { f() }

// expiry is an argument of CallAt made of a function.
type expiry func()

func (f expiry) Expire() { f() }

// newScheduler returns a scheduler that is closed at the end of the test, and what it logs.
func newScheduler(t testing.TB, cfg act.Config) (*act.Scheduler, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	if cfg.Logger == nil {
		cfg.Logger = zap.New(core)
	}
	s := act.New(cfg)
	t.Cleanup(func() { _ = s.Close() }) // a Cut is the business of the tests that cut
	return s, logs
}

// newVirtual is newScheduler on a virtual clock: sleeping costs no time but moves the clock.
func newVirtual(t testing.TB, cfg act.Config) (*act.Scheduler, *clock, *observer.ObservedLogs) {
	t.Helper()
	c := &clock{}
	cfg.Clock = c
	s, logs := newScheduler(t, cfg)
	s.Internals().SetIdler(&dreamer{clock: c})
	return s, c, logs
}

type clock = servertest.Clock

// dreamer is an Idler that sleeps on a clock: the time passes at once. It panics when asked to sleep
// for ever, since nothing could interrupt it.
type dreamer struct {
	clock     *clock
	looks     int
	insomniac bool // to sleep is an error
}

func (d *dreamer) Idle(atMost time.Duration) {
	switch {
	case atMost < 0:
		panic("a virtual sleep without an end")
	case atMost == 0:
		d.looks++
	case d.insomniac:
		panic("asleep while something is due")
	default:
		d.clock.Pass(atMost)
	}
}

func (*dreamer) Interrupt() {}

// halt ends a Run at once and leaves everything.
var halt = shutdown.Policy{Kind: shutdown.Halt}

// idlerOf is an Idler made of a function. Interrupt does nothing.
type idlerOf func(atMost time.Duration)

func (f idlerOf) Idle(atMost time.Duration) { f(atMost) }
func (idlerOf) Interrupt()                  {}

// messages returns what was logged, without the fields.
func messages(logs *observer.ObservedLogs) (all []string) {
	for _, e := range logs.All() {
		all = append(all, e.Message)
	}
	return all
}

// childVariable names the child that a test binary is to be instead of running tests.
const childVariable = "DAIMON_ACT_CHILD"

// children are programs whose end is what a test is about: each runs in a process of its own.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		play, known := children[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no such child:", name)
			os.Exit(3)
		}
		play()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// runChild plays one of children in a process of its own and returns what it wrote and how it ended.
func runChild(t *testing.T, name string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childVariable+"="+name,
		"GORACE=atexit_sleep_ms=0") // the detector waits a second for late reports; the child has none
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}
