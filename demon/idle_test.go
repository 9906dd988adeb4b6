package demon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

// engine is an Idler that writes down what it is asked: l for a look, b for a block, i for an Interrupt.
type engine struct {
	asked []string
	over  bool // writes down no more
	then  func(atMost time.Duration)
}

func (e *engine) Idle(atMost time.Duration) {
	if atMost == 0 {
		e.note("l")
	} else {
		e.note("b")
	}
	if e.then != nil {
		e.then(atMost)
	}
}

func (e *engine) Interrupt() { e.note("i") }

func (e *engine) note(what string) {
	if !e.over {
		e.asked = append(e.asked, what)
	}
}

func (e *engine) String() string { return strings.Join(e.asked, "") }

// wrapped returns a strategy's Idler round e.
func wrapped(t *testing.T, strategy act.Strategy, e *engine) facts.Idler {
	s, _, _ := stepped(t)
	return strategy(s, e)
}

const never = time.Hour

func TestPauseLooksAfterEachPause(t *testing.T) {
	e := &engine{}
	i := wrapped(t, demon.Pause(time.Microsecond), e)
	i.Idle(-1)
	i.Idle(0)
	i.Idle(never)
	require.Equal(t, "lll", e.String())
	require.Equal(t, facts.Pausing, i.(facts.Resting).Rest())
}

func TestPauseIsCutShort(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(e *engine, i facts.Idler)
	}{
		{"by a deadline", func(e *engine, i facts.Idler) { i.Idle(time.Millisecond) }},
		{"by having something to do", func(e *engine, i facts.Idler) { i.Idle(0) }},
		{"by an Interrupt before it", func(e *engine, i facts.Idler) {
			i.Interrupt()
			i.Interrupt()
			i.Idle(-1)
		}},
		{"by an Interrupt in it", func(e *engine, i facts.Idler) {
			defer time.AfterFunc(5*time.Millisecond, i.Interrupt).Stop()
			i.Idle(-1)
		}},
		{"by an Interrupt in the look before it", func(e *engine, i facts.Idler) {
			e.then = func(time.Duration) { e.then = nil; i.Interrupt() }
			i.Idle(0)
			i.Idle(-1)
		}},
		{"by an Interrupt before a deadline", func(e *engine, i facts.Idler) {
			i.Interrupt()
			i.Idle(never)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &engine{}
			done := make(chan bool)
			i := wrapped(t, demon.Pause(never), e)
			go func() { row.do(e, i); close(done) }()
			servertest.Receive(t, done)
			require.NotContains(t, e.String(), "b")
			require.True(t, strings.HasSuffix(e.String(), "l"), "a pause ends with a look")
			require.NotContains(t, e.String(), "i", "a look is not interrupted")
		})
	}
}

func TestPauseAnswersAnInterruptOnce(t *testing.T) {
	e := &engine{}
	i := wrapped(t, demon.Pause(20*time.Millisecond), e)
	i.Interrupt()
	i.Idle(-1)
	start := time.Now()
	i.Idle(-1)
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
}

func TestBusyOnlyLooks(t *testing.T) {
	e := &engine{}
	i := wrapped(t, demon.Busy(), e)
	i.Idle(-1)
	i.Idle(never)
	i.Interrupt()
	i.Idle(0)
	require.Equal(t, "lll", e.String())
	require.Equal(t, facts.Polling, i.(facts.Resting).Rest())
}

// hybrids is a scheduler under Hybrid(50 µs) whose engine takes 10 µs of the clock for each look, and
// what remains of time for each block: then it gives the order that ends Run.
func hybrids(t *testing.T) (*act.Scheduler, *engine, *servertest.Clock) {
	c := &servertest.Clock{}
	s := act.New(act.Config{Clock: c, Idle: demon.Hybrid(50 * time.Microsecond)})
	t.Cleanup(func() { _ = s.Close() })
	e := &engine{}
	e.then = func(atMost time.Duration) {
		switch {
		case atMost == 0:
			c.Pass(10 * time.Microsecond)
		case atMost > 0:
			c.Pass(atMost)
		default:
			s.Shutdown(shutdown.Policy{})
			e.over = true // how the end goes is not this strategy's matter
		}
	}
	s.Internals().SetIdler(e)
	return s, e, c
}

// The pass that finds a deadline due looks as well, before the turn that is ready now.
func TestHybridLooksAWhileAfterATurnAndThenBlocks(t *testing.T) {
	turn := "T"
	for _, row := range []struct {
		name string
		set  func(s *act.Scheduler, e *engine)
		want string
	}{
		{"nothing but the beginning", func(s *act.Scheduler, e *engine) {}, "lllllb"},
		{"a block that ends for nothing", func(s *act.Scheduler, e *engine) {
			then := e.then
			e.then = func(atMost time.Duration) {
				if atMost != 0 {
					e.then = then
				} else {
					then(atMost)
				}
			}
		}, "lllllbb"},
		{"woken while looking", func(s *act.Scheduler, e *engine) {
			var w act.Waker
			turns := 0
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				w = t.Waker()
				e.asked = append(e.asked, turn)
				if turns++; turns == 4 {
					return act.Done
				}
				return act.Wait
			}))
			then := e.then
			e.then = func(atMost time.Duration) {
				if then(atMost); len(e.asked)%5 == 0 {
					w.Wake()
				}
			}
		}, "TllllTllllTllllTlllllb"},
		{"a deadline ends a block, and brings more looks", func(s *act.Scheduler, e *engine) {
			var tm act.Timer
			told := false
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				e.asked = append(e.asked, turn)
				if told {
					return act.Done
				}
				told = true
				t.WakeAfter(&tm, time.Second)
				return act.Wait
			}))
		}, "Tlllllb" + "l" + "Tlllllb"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, e, _ := hybrids(t)
			s.Install(demon.Stay())
			servertest.Step(t, s)
			e.asked = nil
			row.set(s, e)
			require.NoError(t, s.Run())
			require.Equal(t, row.want+"i", e.String(), "the order comes in a block, so it interrupts")
		})
	}
}

func TestHybridInterruptedBeforeItBlocksLooks(t *testing.T) {
	s, c, _ := stepped(t)
	e := &engine{}
	i := demon.Hybrid(time.Microsecond)(s, e)
	i.Idle(-1) // the looks of the beginning
	c.Pass(time.Microsecond)
	servertest.Step(t, s)
	e.asked = nil
	i.Interrupt()
	i.Idle(-1)
	require.Equal(t, "l", e.String())
	require.Equal(t, facts.Asleep, i.(facts.Resting).Rest(), "a block that was over at once")
	i.Idle(-1)
	require.Equal(t, "lb", e.String(), "once")
	e.then = func(time.Duration) { e.then = nil; i.Interrupt() }
	i.Idle(-1)
	require.Equal(t, "lbbi", e.String(), "in the block: passed on")
	e.then = func(time.Duration) { e.then = nil; i.Interrupt() }
	i.Idle(0)
	i.Idle(-1)
	require.Equal(t, "lbbill", e.String(), "in the look: remembered")
}
