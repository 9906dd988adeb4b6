package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

func (b *kernelBench) poller() *poller {
	p, err := b.OpenPoller()
	require.NoError(b.t, err)
	return p.(*poller)
}

// watched returns a connection that a poller watches.
func (b *kernelBench) watched() (e *end, fd int, p *poller) {
	e, fd = b.pair()
	p = b.poller()
	require.NoError(b.t, p.Add(fd, 7, netpoll.In|netpoll.Out))
	return e, fd, p
}

// look polls without waiting.
func (b *kernelBench) look(p engine.Poller) []netpoll.Event {
	events := make([]netpoll.Event, 8)
	n, err := p.Wait(events, 0)
	require.NoError(b.t, err)
	return events[:n]
}

type reported = []netpoll.Event

func TestReceiveWithoutEventFailsTheWorld(t *testing.T) {
	b := newBench(t, Options{})
	e, fd, p := b.watched()
	b.look(p)
	_, _ = e.send(nil, []byte("one"))
	b.settle()
	b.look(p)
	_, err := b.hear(fd)
	require.NoError(t, err)
	b.right()
	_, _ = b.hear(fd) // after the short read nothing is there
	require.ErrorContains(t, b.w.failure, "no event has reported input")
}

// A sender that found no room is notified when a third of the room is free, and not before.
func TestRoomIsReported(t *testing.T) {
	for _, local := range []bool{false, true} {
		b := newBench(t, Options{})
		var e *end
		var fd int
		if local {
			l, err := b.ListenUnix("/s", 0, nil)
			require.NoError(t, err)
			e, err = b.w.net.dialUnix("/s", &fakeHolder{})
			require.NoError(t, err)
			fd, err = b.Accept(l)
			require.NoError(t, err)
		} else {
			e, fd = b.pair()
		}
		p := b.poller()
		require.NoError(t, p.Add(fd, 7, netpoll.In|netpoll.Out))
		b.look(p)
		capacity := e.in.capacity
		n, err := b.Send(fd, nil, make([]byte, capacity+1))
		require.NoError(t, err)
		require.Equal(t, capacity, n)
		b.settle()
		enough := (capacity + 2) / 3
		if local {
			enough = capacity // it was one piece, or two
		}
		_, _ = e.receive(make([]byte, enough-1))
		b.settle()
		require.Empty(t, b.look(p))
		_, _ = e.receive(make([]byte, 1))
		b.settle()
		require.Equal(t, reported{{Tag: 7, Ready: netpoll.Out}}, b.look(p))
		b.right()
	}
}
