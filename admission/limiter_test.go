package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/stretchr/testify/require"
)

func keyFor(text string) key {
	k, ok := keyOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(text), 1)))
	if !ok {
		panic(text)
	}
	return k
}

// known counts the sources of l.
func (l *Limiter) known() (n int) {
	for i := range l.shards {
		n += len(l.shards[i].sources)
	}
	return n
}

func TestWhatASourceIs(t *testing.T) {
	for _, row := range []struct {
		one, other string
		same       bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"::1", "0.0.0.0", false},
	} {
		require.Equal(t, row.same, keyFor(row.one) == keyFor(row.other), "%s %s", row.one, row.other)
	}
	for _, none := range []net.Addr{nil, &net.UnixAddr{Name: "/s", Net: "unix"}, &net.TCPAddr{}} {
		_, ok := keyOf(none)
		require.False(t, ok, "%v", none)
	}
	_, ok := keyOf(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)})
	require.True(t, ok)
}

func TestConnectionsOfASource(t *testing.T) {
	l := &Limiter{Conns: 2}
	a, b := keyFor("192.0.2.1"), keyFor("192.0.2.2")
	first, err := l.take(a, 0)
	require.NoError(t, err)
	_, err = l.take(a, 0)
	require.NoError(t, err)
	_, err = l.take(a, time.Hour)
	require.ErrorIs(t, err, errTooMany)
	other, err := l.take(b, 0)
	require.NoError(t, err, "another source")
	l.release(first)
	_, err = l.take(a, 0)
	require.NoError(t, err)
	l.release(first)
	l.release(first)
	l.release(other)
	require.Zero(t, l.known(), "nothing is kept of sources without connections")
}

func TestHowFastASourceMayCome(t *testing.T) {
	const s = time.Second
	for _, row := range []struct {
		name        string
		rate, burst int
		at          []time.Duration
		taken       string // 1: taken, 0: refused
	}{
		{"one a second", 1, 0, []time.Duration{s, s, 2*s - 1, 2 * s, 10 * s, 10 * s}, "100110"},
		{"as many as the rate at once", 3, 0, []time.Duration{s, s, s, s, s + s/3 - 1, s + s/3, s + s/3}, "1110010"},
		{"a burst", 1, 3, []time.Duration{s, s, s, s, 2 * s, 2 * s, 4 * s, 4 * s, 4 * s}, "111010110"},
		{"no more than a burst after a long time", 1, 2, []time.Duration{s, 1000 * s, 1000 * s, 1000 * s}, "1110"},
		{"a burst without an end", 50, math.MaxInt, []time.Duration{s, s, s}, "111"},
		{"a clock that is a little behind", 1, 1, []time.Duration{s, s - 1, 2 * s}, "101"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, closes := range []bool{false, true} {
				l, taken := &Limiter{Rate: row.rate, Burst: row.burst}, ""
				for _, now := range row.at {
					x, err := l.take(keyFor("192.0.2.1"), now)
					switch {
					case err == nil:
						taken += "1"
						if closes {
							l.release(x)
						}
					default:
						require.ErrorIs(t, err, errTooFast)
						taken += "0"
					}
				}
				require.Equal(t, row.taken, taken, "closed at once: %v", closes)
			}
		})
	}
}

// What a source has made is known until it has all of its burst again, and no longer.
func TestSourcesWithoutConnectionsAreForgotten(t *testing.T) {
	l := &Limiter{Rate: 1, Burst: 2}
	for i := range 1000 {
		x, err := l.take(keyFor(fmt.Sprintf("192.0.%d.%d", i/250, i%250)), 0)
		require.NoError(t, err)
		l.release(x)
	}
	require.Equal(t, 1000, l.known())
	require.EqualValues(t, 1000, l.resting.Load())
	for i := range 1000 { // others, later: each finds two that can be forgotten, if its shard has them
		x, err := l.take(keyFor(fmt.Sprintf("198.51.%d.%d", i/250, i%250)), time.Minute)
		require.NoError(t, err)
		l.release(x)
	}
	require.Less(t, l.known(), 1100)
	require.EqualValues(t, l.known(), l.resting.Load())
}

func TestSourcesThatAreRememberedAreBounded(t *testing.T) {
	l := &Limiter{Rate: 1, Remembered: 100}
	for i := range 10_000 {
		x, err := l.take(keyFor(fmt.Sprintf("10.0.%d.%d", i/250, i%250)), 0)
		require.NoError(t, err)
		l.release(x)
		require.LessOrEqual(t, l.known(), 100)
	}
	require.EqualValues(t, 100, l.resting.Load())
	open, err := l.take(keyFor("192.0.2.1"), 0)
	require.NoError(t, err)
	for i := range 10_000 {
		x, err := l.take(keyFor(fmt.Sprintf("10.1.%d.%d", i/250, i%250)), 0)
		require.NoError(t, err)
		l.release(x)
	}
	_, err = l.take(keyFor("192.0.2.1"), 0)
	require.ErrorIs(t, err, errTooFast, "those with connections are not forgotten")
	l.release(open)
}

// Sources of packets can be forged without end.
func TestSourcesOfPacketsAreForgotten(t *testing.T) {
	l := &Limiter{Messages: 1, Remembered: 10}
	s := act.New(act.Config{Clock: &servertest.Clock{}})
	defer s.Close()
	for i := range 1000 {
		require.True(t, l.Admit(s, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})))
	}
	require.LessOrEqual(t, l.known(), 10)
	require.EqualValues(t, l.known(), l.resting.Load())
}

func TestManySchedulersShareALimiter(t *testing.T) {
	l := &Limiter{Conns: 3, Rate: 1_000_000, Remembered: 10}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[key]int{}
	for i := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 0))
			var mine []*source
			for n := range 2000 {
				k := keyFor(fmt.Sprintf("192.0.2.%d", random.IntN(20)))
				if x, err := l.take(k, time.Duration(n)*time.Millisecond); err == nil {
					mu.Lock()
					open[k]++
					if open[k] > 3 {
						t.Errorf("%d connections of a source", open[k])
					}
					mu.Unlock()
					mine = append(mine, x)
				}
				if len(mine) > random.IntN(5) {
					mu.Lock()
					open[mine[0].key]--
					mu.Unlock()
					l.release(mine[0])
					mine = mine[1:]
				}
			}
			for _, x := range mine {
				mu.Lock()
				open[x.key]--
				mu.Unlock()
				l.release(x)
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, l.known(), 10)
	require.EqualValues(t, l.known(), l.resting.Load())
}

// The bound of Remembered in bytes, as its comment has it.
func TestMeasureASource(t *testing.T) {
	const n = 20_000
	price.AtMost(t, "bytes of a source", 400, func() float64 { // with maps that were outgrown
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := &Limiter{Rate: 1}
		for i := range n {
			x, _ := l.take(key{10: 0xff, 11: 0xff, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}, 0)
			l.release(x)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / n
	})
}
