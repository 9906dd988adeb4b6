package sim

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/tier"
)

// echoer is a small engine that follows the rule of package netpoll, and no more. It sends back what it receives, and
// closes when everything is sent.
type echoer struct {
	b       *bench
	p       readiness.Poller
	ports   []int
	pending []bool // listeners that may have a connection
	again   time.Duration
	slots   []*echoed
	gens    []uint32
	events  [16]netpoll.Event
	taken   int
}

type echoed struct {
	fd    int
	local bool
	ready netpoll.Ready
	queue []byte
	ended bool
}

const portTag = 1 << 60

func newEchoer(b *bench) *echoer {
	x := &echoer{b: b, p: b.poller()}
	tcp := b.listen()
	local, err := b.ListenUnix("/echo", netpoll.ListenOptions{})
	require.NoError(b.t, err)
	for i, fd := range []int{tcp, local} {
		require.NoError(b.t, x.p.Add(fd, portTag+uint64(i), netpoll.Kind(1+i)))
		x.ports = append(x.ports, fd)
		x.pending = append(x.pending, false)
	}
	return x
}

// step is a pass: a poll, and then everything that can run.
func (x *echoer) step() {
	n, err := x.p.Wait(x.events[:], 0)
	require.NoError(x.b.t, err)
	for _, e := range x.events[:n] {
		if e.Tag >= portTag {
			x.pending[e.Tag-portTag] = true
			continue
		}
		i := uint32(e.Tag)
		if c := x.slots[i]; c != nil && x.gens[i] == uint32(e.Tag>>32) {
			if e.Ready&(netpoll.PeerClosed|netpoll.Error) != 0 {
				e.Ready |= netpoll.In
			}
			c.ready |= e.Ready
		}
	}
	for i := range x.ports {
		for x.pending[i] && x.b.w.now >= x.again && x.accept(i) {
		}
	}
	for i, c := range x.slots {
		if c != nil {
			x.serve(i, c)
		}
	}
}

// accept accepts a connection. Without a free descriptor it tries again after a while, since no event follows.
func (x *echoer) accept(i int) bool {
	fd, err := x.b.Accept(x.ports[i])
	switch err {
	case nil:
	case syscall.EAGAIN:
		x.pending[i] = false
		return false
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM:
		x.again = x.b.w.now + 100*time.Millisecond
		x.b.w.after(100*time.Millisecond, call1(x.b.r.wake))
		return false
	default:
		return true
	}
	x.taken++
	slot := slices.Index(x.slots, nil)
	if slot < 0 {
		slot = len(x.slots)
		x.slots, x.gens = append(x.slots, nil), append(x.gens, 0)
	}
	if err := x.p.Add(fd, uint64(x.gens[slot])<<32|uint64(slot), netpoll.Stream); err != nil {
		_ = x.b.Close(fd)
		return true
	}
	x.slots[slot] = &echoed{fd: fd, local: i == 1}
	return true
}

type call1 func()

func (f call1) fire() { f() }

func (x *echoer) serve(i int, c *echoed) {
	for c.ready&netpoll.In != 0 && len(c.queue) < 1<<16 && !c.ended {
		p := make([]byte, 1+x.b.w.dice[workload].below(4096))
		n, err := x.b.Receive(c.fd, p)
		c.queue = append(c.queue, p[:n]...)
		switch {
		case err == syscall.EAGAIN:
			c.ready &^= netpoll.In
		case err == io.EOF:
			c.ended = true
		case err != nil:
			x.drop(i, c)
			return
		case n < len(p) && !c.local && c.ready&(netpoll.PeerClosed|netpoll.Error) == 0:
			c.ready &^= netpoll.In
		}
	}
	for len(c.queue) > 0 && c.ready&netpoll.Out != 0 {
		n, err := x.b.Send(c.fd, c.queue[:len(c.queue)/3], c.queue[len(c.queue)/3:])
		if err == syscall.EAGAIN || err == nil && n < len(c.queue) {
			c.ready &^= netpoll.Out
		} else if err != nil {
			x.drop(i, c)
			return
		}
		c.queue = c.queue[n:]
	}
	if c.ended && len(c.queue) == 0 {
		x.drop(i, c)
		return
	}
	if c.ready&netpoll.In != 0 && len(c.queue) < 1<<16 && !c.ended {
		x.b.r.wake()
	}
}

func (x *echoer) drop(i int, c *echoed) {
	_ = x.b.Close(c.fd)
	x.slots[i] = nil
	x.gens[i]++
}

// caller sends so many bytes, ends, and expects the same bytes back.
type caller struct {
	b        *bench
	e        *end
	id       uint64
	size     int
	sent     int
	got      int
	muted    bool
	runnable bool
	over     bool
	err      error
}

func (c *caller) ready()         { c.runnable = true }
func (c *caller) String() string { return fmt.Sprintf("caller %d", c.id) }
func (c *caller) number() uint64 { return c.id }

func (c *caller) at(i int) byte { return byte(i*7 + int(c.id) + i>>8) }

func (c *caller) step() {
	c.runnable = false
	if c.over || !c.e.settled() {
		return
	}
	if c.err = c.e.socketError(); c.err == nil {
		c.err = c.write()
	}
	for c.err == nil {
		c.err = c.read()
	}
	if c.err == syscall.EAGAIN {
		c.err = nil
		return
	}
	c.over = true
	c.e.close()
}

func (c *caller) write() error {
	for c.sent < c.size {
		p := make([]byte, min(c.size-c.sent, 1+c.b.w.dice[workload].below(10_000)))
		for i := range p {
			p[i] = c.at(c.sent + i)
		}
		n, err := c.e.send(nil, p)
		c.sent += n
		if err == syscall.EAGAIN {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if !c.muted {
		c.muted = true
		return c.e.closeWrite()
	}
	return nil
}

func (c *caller) read() error {
	p := make([]byte, 1+c.b.w.dice[workload].below(8192))
	n, err := c.e.receive(p)
	for i, x := range p[:n] {
		if x != c.at(c.got+i) {
			c.b.t.Fatalf("%v: byte %d is wrong", c, c.got+i)
		}
	}
	c.got += n
	return err
}

// town runs an echoer and some callers.
func town(t testing.TB, o Options, callers int) (b *bench, all []*caller) {
	b = newBench(t, o)
	x := newEchoer(b)
	for i := range callers {
		c := &caller{b: b, id: uint64(i + 1), size: b.w.dice[workload].below(200_000), runnable: true}
		var err error
		if i%3 == 2 {
			c.e, err = b.w.net.dialUnix("/echo", c)
		} else {
			c.e, err = b.w.net.dialTCP(port80, c)
		}
		require.NoError(t, err)
		all = append(all, c)
	}
	const heal = 5 * time.Second
	for steps := 0; b.w.failure == nil; steps++ {
		require.Less(t, steps, 2_000_000, "no end")
		if !b.w.healed && b.w.now > heal {
			b.w.healed = true
			b.w.net.heal()
		}
		busy := false
		for _, c := range all {
			if c.runnable {
				busy = true
				c.step()
			}
		}
		if b.r.at >= 0 {
			busy = true
			b.w.disable(b.r)
			b.w.now += time.Microsecond
			x.step()
		}
		at, ok := b.w.agenda.next()
		switch {
		case ok && (!busy || at <= b.w.now):
			b.w.now = max(b.w.now, at)
			b.w.agenda.take().fire()
		case !busy:
			b.right()
			for i, c := range x.slots {
				require.Nil(t, c, "slot %d", i)
			}
			return b, all
		}
	}
	b.right()
	return b, all
}

// whole requires that each caller has got all its bytes back, unless a fault has hit its connection.
func whole(t testing.TB, b *bench, all []*caller) (hurt int) {
	for _, c := range all {
		require.True(t, c.over, "%v: %d of %d sent, %d received: %v", c, c.sent, c.size, c.got, b.w.history.tail())
		if c.e.c.hurt {
			hurt++
			continue
		}
		require.Equal(t, io.EOF, c.err, "%v", c)
		require.Equal(t, c.size, c.got)
	}
	require.Empty(t, b.w.net.connections)
	require.Zero(t, b.k.stray)
	return hurt
}

func TestEchoWithoutFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(tier.Choose(10, 5, 50)) {
		b, all := town(t, Options{Seed: seed}, 12)
		require.Zero(t, whole(t, b, all))
	}
}

// Code that follows the rules gets all bytes, unless a fault hits its connection. Each fault does happen.
func TestEchoWithEachFault(t *testing.T) {
	t.Parallel()
	var f Faults
	for i, n := range f.all() {
		if slices.Contains([]string{"wall clock jump", "late offload", "lost offload", "full inbox"}, n.name) {
			continue
		}
		t.Run(n.name, func(t *testing.T) {
			happened := 0
			for seed := range uint64(5) {
				o := Options{Seed: seed}
				*o.Faults.all()[i].weight = often / 8
				b, all := town(t, o, 12)
				whole(t, b, all)
				happened += b.w.stats.faults
			}
			require.Positive(t, happened)
		})
	}
}

func TestEchoWithAllFaults(t *testing.T) {
	t.Parallel()
	seeds := tier.Choose(50, 10, 500)
	faults, hurt := 0, 0
	for seed := range uint64(seeds) {
		o := Options{Seed: seed, Faults: Anything()}
		d := newDice(seed, purposes)
		o.Faults = o.Faults.swarm(&d)
		b, all := town(t, o, 12)
		hurt += whole(t, b, all)
		faults += b.w.stats.faults
	}
	t.Logf("%d faults, %d of %d connections hurt", faults, hurt, 12*seeds)
}

func TestSameSeedSameHistory(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(10) {
		o := Options{Seed: seed, Faults: Anything()}
		first, _ := town(t, o, 8)
		second, _ := town(t, o, 8)
		require.Equal(t, first.w.history.hash, second.w.history.hash)
		require.Equal(t, first.w.history.tail(), second.w.history.tail())
		seen[first.w.history.hash] = true
	}
	require.Len(t, seen, 10)
}

// Bytes that a reset overtakes are lost. Bytes that had arrived before are not.
func TestResetOvertakes(t *testing.T) {
	lost, kept := 0, 0
	for seed := range uint64(50) {
		b := newBench(t, Options{Seed: seed})
		e, fd := b.pair()
		_, _ = e.send(nil, []byte("arrived"))
		b.settle()
		_, _ = e.send(nil, []byte(" on its way"))
		e.reset()
		b.settle()
		got, err := b.hear(fd)
		require.NoError(t, err)
		switch got {
		case "arrived":
			lost++
		case "arrived on its way":
			kept++
		}
		_, err = b.hear(fd)
		require.Equal(t, syscall.ECONNRESET, err)
		_, err = b.hear(fd)
		require.Equal(t, io.EOF, err)
	}
	require.Positive(t, lost)
	require.Positive(t, kept)
}
