package wheel

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A twin is the wheel as its text promises it, obvious and slow.
type twin struct {
	reached int64
	asked   int64
	open    bool
	seq     int
	entries []entry
}

type entry struct {
	node *Node[int]
	when int64
	late bool // for the next loop
	seq  int  // arming order
}

func (m *twin) arm(n *Node[int], when int64) {
	m.disarm(n)
	m.seq++
	when = max(when, 0)
	m.entries = append(m.entries, entry{n, when, when <= m.asked, m.seq})
	slices.SortFunc(m.entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.when, b.when), a.seq-b.seq) })
}

func (m *twin) disarm(n *Node[int]) bool {
	before := len(m.entries)
	m.entries = slices.DeleteFunc(m.entries, func(e entry) bool { return e.node == n })
	return len(m.entries) < before
}

func (m *twin) pop(now int64) *Node[int] {
	if now < m.asked {
		return nil
	}
	if !m.open {
		m.open, m.asked = true, now
		for i := range m.entries {
			m.entries[i].late = false
		}
	}
	if i := slices.IndexFunc(m.entries, func(e entry) bool { return !e.late && e.when <= m.asked }); i >= 0 {
		first := m.entries[i]
		m.entries = slices.Delete(m.entries, i, i+1)
		m.reached = max(m.reached, first.when)
		return first.node
	}
	m.reached, m.open = m.asked, false
	if m.asked < now {
		return m.pop(now)
	}
	return nil
}

// A tape is where the operations come from; at its end it reads zeros.
type tape []byte

func (b *tape) byte() byte {
	if len(*b) == 0 {
		return 0
	}
	first := (*b)[0]
	*b = (*b)[1:]
	return first
}

// distance is a span of any magnitude, small ones as likely as large ones.
func (b *tape) distance() int64 {
	bits := b.byte() % 64
	return int64((uint64(b.byte())<<56 | uint64(b.byte())<<48 | uint64(b.byte())) >> (63 - bits) >> 1)
}

// after adds without passing the end of time.
func after(now, d int64) int64 {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + d
}

// compare lets a wheel and its twin do what the tape says.
func compare(t *testing.T, b tape) {
	const nodes = 40 // more than Next scans
	var w Wheel[int]
	var m twin
	all := make([]Node[int], nodes)
	last := int64(0)
	pop := func(now int64) bool {
		want, got := m.pop(now), w.Pop(now)
		require.Same(t, want, got, "now %d", now)
		if got != nil {
			require.LessOrEqual(t, got.When(), now)
			require.False(t, got.Armed())
		}
		return got != nil
	}
	for len(b) > 0 {
		op := b.byte()
		n := &all[int(b.byte())%nodes]
		switch op % 8 {
		case 0, 1, 2: // arm or move, near or far
			last = after(m.reached, b.distance())
			w.Arm(n, last)
			m.arm(n, last)
		case 3: // the same deadline as the one before
			w.Arm(n, last)
			m.arm(n, last)
		case 4: // the past, the end of time
			when := m.reached - b.distance()
			if op >= 224 {
				when = math.MaxInt64
			}
			w.Arm(n, when)
			m.arm(n, when)
		case 5:
			require.Equal(t, m.disarm(n), w.Disarm(n))
		case 6: // one step, rarely backwards
			now := after(m.reached, b.distance())
			if op >= 248 {
				now = m.reached / 2
			}
			pop(now)
		case 7: // all that is due
			for now := after(m.reached, b.distance()); pop(now); {
			}
		}
		require.Equal(t, len(m.entries), armed(&w))
		require.Equal(t, len(m.entries), w.Armed())
		require.Equal(t, slices.ContainsFunc(m.entries, func(e entry) bool { return e.node == n }), n.Armed())
		checkNext(t, &w, &m)
	}
	for range 2 { // the end of a loop, and another one
		for pop(math.MaxInt64) {
		}
	}
	require.Zero(t, armed(&w))
	require.Zero(t, w.occupied)
	require.Zero(t, w.bitmaps)
	require.Zero(t, w.slots)
}

func checkNext(t *testing.T, w *Wheel[int], m *twin) {
	next, ok := w.Next()
	require.Equal(t, len(m.entries) > 0, ok)
	if !ok {
		return
	}
	earliest := int64(math.MaxInt64)
	for _, e := range m.entries {
		require.Equal(t, e.when, e.node.When())
		earliest = min(earliest, e.when)
	}
	require.LessOrEqual(t, next, earliest)
	if earliest > m.asked {
		require.Greater(t, next, m.asked, "progress")
	}
	if len(m.entries) <= nextScan || earliest > m.asked && earliest>>groupBits == m.reached>>groupBits {
		require.Equal(t, earliest, next, "exact")
	}
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
		b := make(tape, 3000)
		source.Read(b)
		if seed%4 == 1 { // many equal deadlines: few kinds of operation, few distances
			for i := range b {
				b[i] &= 0b1000_0111
			}
		}
		if !t.Run("", func(t *testing.T) { compare(t, b) }) {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzWheel(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		compare(t, data[:min(len(data), 4096)]) // longer ones show nothing new and are slow in the twin
	})
}
