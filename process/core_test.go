package process_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
)

// A process sends the next message as soon as the last one was received, on another thread: that is, just when the
// receiver finds its mailbox empty and falls asleep. A goroutine does the same with messages of its own. A million
// rounds take some seconds if each thread has a CPU; otherwise the test ends after ten seconds.
func TestAMessageToAProcessThatIsFallingAsleepIsNotLost(t *testing.T) {
	const enough = 10 * time.Second
	rounds := int64(scaled(1_000_000))
	r, to := startTally(t, act.Config{Schedulers: 2, Idle: demon.Busy()})
	dummy := process.Spawn(r.sys, idler, process.Options{})
	r.quiescent()
	var over atomic.Bool
	sent := int64(0)
	process.Spawn(r.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		defer over.Store(true)
		_ = dummy.Send(p, 0) // a hand-off to dummy, so that the receiver runs on the other thread
		for end := time.Now().Add(enough); sent < rounds && time.Now().Before(end); {
			sent++
			if err := to.Send(p, 0); err != nil {
				return p.Fail(err)
			}
			if !reaches(t, &to.received[0], sent) {
				return act.Failed
			}
		}
		return act.Done
	}), process.Options{})
	outside := to.sendUntil(r, 1, over.Load)
	r.quiescent()
	require.Equal(t, sent, to.received[0].Load())
	require.Equal(t, outside, to.received[1].Load())
	t.Logf("%d messages of a process, %d of a goroutine, %d turns: %+v", sent, outside, to.turns, r.sys.Stats())
	dummy.Kill()
	to.Kill()
	r.end()
}

// Two processes send to one receiver, and each hands its thread over to it.
func TestAMessageDuringAHandOffIsNotLost(t *testing.T) {
	rounds := int64(scaled(300_000))
	r, to := startTally(t, act.Config{Schedulers: 2})
	var over atomic.Int32
	for i := range 2 {
		sent := int64(0)
		process.Spawn(r.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			switch {
			case to.received[i].Load() < sent:
				return act.Yield
			case sent == rounds:
				over.Add(1)
				return act.Done
			}
			sent++
			if err := to.Send(p, i); err != nil {
				return p.Fail(err)
			}
			return act.Yield
		}), process.Options{})
	}
	sent := to.sendUntil(r, 2, func() bool { return over.Load() == 2 })
	r.quiescent()
	require.Equal(t, rounds, to.received[0].Load())
	require.Equal(t, rounds, to.received[1].Load())
	require.Equal(t, sent, to.received[2].Load())
	t.Logf("%d messages of each process, %d of a goroutine, %d turns: %+v", rounds, sent, to.turns, r.sys.Stats())
	to.Kill()
	r.end()
}

// tally is a process that counts the messages of each sender.
type tally struct {
	process.Ref[int]
	received [3]atomic.Int64
	turns    int
}

func startTally(t *testing.T, on act.Config) (running, *tally) {
	x := &tally{}
	return startWith(t, on, process.Config{}, func(sys *process.System) {
		x.Ref = process.Spawn(sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			x.turns++
			for {
				from, ok := p.Receive()
				if !ok {
					return act.Wait
				}
				x.received[from].Add(1)
			}
		}), process.Options{})
	}), x
}

// sendUntil sends one message after the other, each when the last was received, until over returns true. It fails with
// the states of all processes if nothing is received any more.
func (x *tally) sendUntil(r running, as int, over func() bool) (sent int64) {
	r.T.Helper()
	before := [3]int64{}
	for idle := 0; !over(); time.Sleep(20 * time.Microsecond) {
		if x.received[as].Load() == sent {
			sent++
			require.NoError(r.T, x.Send(r.sys, as))
		}
		now := [3]int64{x.received[0].Load(), x.received[1].Load(), x.received[2].Load()}
		if now != before {
			before, idle = now, 0
		} else if idle++; idle > 200_000 { // about 20 s in which this goroutine ran, so the others could have run too
			require.FailNow(r.T, "stuck", "%v: %+v: %s", now, r.sys.Stats(), r.sys.States())
		}
	}
	return sent
}

// The scheduler of the receiver is about to sleep, since nothing else is ready. A goroutine and a process on the other
// scheduler send by turns.
func TestAMessageToASchedulerThatIsFallingAsleepIsNotLost(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, on act.Config) {
		const rounds = 5000
		got := make(chan int, 2)
		var one, two process.Ref[int]
		r := startWith(t, on, process.Config{}, func(sys *process.System) {
			note := process.Handler[int](func(_ *process.Self[int], m int) { got <- m })
			one = process.Spawn(sys, note, process.Options{})
			two = process.Spawn(sys, process.Handler[int](func(p *process.Self[int], m int) { _ = one.Send(p, m) }), process.Options{})
		})
		for i := range rounds {
			to := []process.Ref[int]{one, two}[i%2]
			require.NoError(t, to.Send(r.sys, i))
			select {
			case m := <-got:
				require.Equal(t, i, m)
			case <-time.After(servertest.Timeout):
				require.FailNow(t, "stuck", "round %d: %+v: %s", i, r.sys.Stats(), r.sys.States())
			}
		}
		one.Kill()
		two.Kill()
		r.end()
	})
}
