package secure

import (
	"crypto/tls"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No more functions run than there are slots, and waiting ones have their turns.
func TestSlotsBoundWhatIsComputed(t *testing.T) {
	for _, n := range []int{1, 3} {
		h := (&Handshakes{Slots: n}).slots()
		var running, most atomic.Int32
		var all sync.WaitGroup
		all.Add(200)
		for range 200 {
			h.execute(func() {
				defer all.Done()
				now := running.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				runtime.Gosched()
				running.Add(-1)
			}, time.Hour)
		}
		all.Wait()
		require.LessOrEqual(t, most.Load(), int32(n))
	}
}

// A function that takes long goes on without its slot, which it gives back once.
func TestAFunctionThatTakesLongHasNoSlot(t *testing.T) {
	h := (&Handshakes{Slots: 1}).slots()
	release := make(chan struct{})
	var slow, quick sync.WaitGroup
	for range 10 {
		slow.Add(1)
		h.Execute(func() {
			defer slow.Done()
			<-release
		})
	}
	quick.Add(1)
	h.Execute(quick.Done)
	quick.Wait()
	close(release)
	slow.Wait()
	require.Eventually(t, func() bool { return h.Limit() == 1 }, 2*time.Minute, time.Millisecond)
}

func TestAtLeastOneSlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.Equal(t, 1, (&Handshakes{}).slots().Limit())
	runtime.GOMAXPROCS(4)
	require.Equal(t, 3, (&Handshakes{}).slots().Limit())
}

// A coroutine that has made a handshake makes the next one, and none is left when no handshake has one.
func TestABodyMakesOneHandshakeAfterTheOther(t *testing.T) {
	var all bodies
	interrupted := all.take(doomed(t))
	first, second := doomed(t), doomed(t)
	b := all.take(first)
	b.resume()
	require.True(t, first.over)
	all.give(b, true)
	require.Same(t, b, all.take(second))
	b.resume()
	require.True(t, second.over)
	all.give(b, true)
	require.Len(t, all.idle, 1)
	all.give(interrupted, false)
	require.Empty(t, all.idle)
	_, goesOn := b.resume()
	require.False(t, goesOn)
}

// doomed is a handshake whose peer has gone.
func doomed(t *testing.T) *handshake {
	x := &handshake{stream: &stream{}, ctx: t.Context(), finished: io.EOF}
	x.stream.shake = x
	x.stream.secret = tls.Server((*wire)(x.stream), &tls.Config{})
	return x
}

// A handshake that has ended before its step had a slot is not computed, and neither is its next step.
func TestAStepOfAHandshakeThatHasEndedComputesNothing(t *testing.T) {
	h := &Handshakes{}
	d := &onGoroutines{x: doomed(t)}
	d.x.of = h
	d.state.Store(closed)
	for _, begun := range []bool{false, true} {
		if begun {
			d.body = h.bodies.take(d.x)
		}
		_, err := d.advance()
		require.NoError(t, err)
		require.False(t, d.x.over, "it was not computed")
		require.Nil(t, d.body)
		require.Zero(t, h.bodies.busy)
	}
}

// At MaxConns a handshake that is computed makes no room.
func TestAHandshakeThatIsComputedIsNotIdle(t *testing.T) {
	x := doomed(t)
	x.stepping = true
	_, idle := x.IdleSince()
	require.False(t, idle)
}
