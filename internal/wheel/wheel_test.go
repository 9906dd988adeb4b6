package wheel

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play runs a script of single letters and returns what was popped:
//
//	a@5  arm a for 5     -a  disarm a     >9  Pop(9) until nil     !9  Pop(9) once
//
// A pop that finds nothing writes a dot.
func play(t *testing.T, script string) string {
	t.Helper()
	var w Wheel[string]
	var popped strings.Builder
	nodes := map[string]*Node[string]{}
	node := func(name string) *Node[string] {
		if nodes[name] == nil {
			nodes[name] = &Node[string]{Of: name}
		}
		return nodes[name]
	}
	number := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		require.NoError(t, err)
		return v
	}
	for op := range strings.FieldsSeq(script) {
		switch {
		case op[0] == '-':
			w.Disarm(node(op[1:]))
		case op[0] == '>':
			for n := w.Pop(number(op[1:])); n != nil; n = w.Pop(number(op[1:])) {
				popped.WriteString(n.Of)
			}
			popped.WriteByte('.')
		case op[0] == '!':
			if n := w.Pop(number(op[1:])); n != nil {
				popped.WriteString(n.Of)
			} else {
				popped.WriteByte('.')
			}
		default:
			name, when, _ := strings.Cut(op, "@")
			w.Arm(node(name), number(when))
		}
	}
	return popped.String()
}

// armed counts the nodes in all rings of w.
func armed[T any](w *Wheel[T]) (n int) {
	count := func(ring *Node[T]) {
		if ring == nil {
			return
		}
		n++
		for at := ring.next; at != ring; at = at.next {
			n++
		}
	}
	count(w.late)
	for level, bitmap := range w.bitmaps {
		for slot := 0; bitmap>>slot != 0; slot++ {
			count(w.slots[level][slot])
		}
	}
	return n
}

func TestOrder(t *testing.T) {
	for _, row := range []struct{ name, script, popped string }{
		{"by deadline", "a@5 b@3 c@4 >10", "bca."},
		{"equal ones as they were armed", "a@5 b@5 c@5 >10", "abc."},
		{"never early", "a@5 >4 >5", ".a."},
		{"at time 0", "a@0 >0", "a."},
		{"negative is 0", "a@-7 b@0 >0", "ab."},
		{"each level", "d@9999999 b@100 a@9 c@5000 >9999999", "abcd."},
		{"just across a slot's edge", "b@64 a@63 c@65 >64 >65", "ab.c."},
		{"just across a level's edge", "b@4096 a@4095 c@4097 >4095 >4096 >4097", "a.b.c."},
		{"equal ones through cascades", "a@70000 b@69999 c@70000 >4000 d@70000 >66000 e@70000 >70000", "..bacde."},
		{"the last there is", "b@9223372036854775807 a@9223372036854775806 >9223372036854775806 >9223372036854775807", "a.b."},
		{"armed again is moved", "a@5 b@6 a@7 >10", "ba."},
		{"armed again for the same time is the youngest", "a@5 b@5 a@5 >10", "ba."},
		{"disarmed", "a@5 b@5 c@5 -b >10", "ac."},
		{"disarmed first, middle, last", "a@90 b@90 c@90 d@90 -a -d -c >90", "b."},
		{"all disarmed, armed again", "a@90 b@90 -b -a >50 b@90 a@90 >90", ".ba."},
		{"due at once: the present", "a@5 >10 b@10 >10", "a.b."},
		{"late ones first", ">10 a@12 b@10 c@7 d@3 e@7 >12", ".cdeba."},
		{"late between two pops", "a@5 b@9 !20 c@1 d@7 !20 !20 !20 !20", "acdb."},
		{"late, disarmed", ">10 a@1 b@2 c@3 -b -a >10", ".c."},
		{"late, then moved into the future", ">10 a@1 b@2 a@11 >10 >11", ".b.a."},
		{"time does not go back", "a@5 b@50 >100 c@70 !60 !99 !100", "ab...c"},
		{"an earlier now leaves what is due later", "a@5 b@50 !100 !4 !49 !50", "a..b"},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.popped, play(t, row.script)) })
	}
}

func TestZeroValues(t *testing.T) {
	var w Wheel[int]
	var n Node[int]
	require.False(t, n.Armed())
	require.Zero(t, n.When())
	require.False(t, w.Disarm(&n))
	require.Zero(t, armed(&w))
	require.Nil(t, w.Pop(math.MaxInt64))
	_, ok := w.Next()
	require.False(t, ok)
}

func TestArmedAndWhen(t *testing.T) {
	var w Wheel[int]
	a, b := &Node[int]{Of: 1}, &Node[int]{Of: 2}
	w.Arm(a, 70)
	w.Arm(b, -70)
	require.True(t, a.Armed() && b.Armed())
	require.EqualValues(t, 70, a.When())
	require.EqualValues(t, 0, b.When())
	require.Equal(t, 2, armed(&w))
	w.Arm(a, 80)
	require.Equal(t, 2, armed(&w))

	require.Same(t, b, w.Pop(79))
	require.False(t, b.Armed())
	require.Equal(t, 2, b.Of)
	require.Nil(t, w.Pop(79))
	require.Equal(t, 1, armed(&w))
	require.True(t, w.Disarm(a))
	require.False(t, w.Disarm(a))
	require.EqualValues(t, 80, a.When(), "readable after")
	require.Zero(t, armed(&w))
}

func TestArmingWithinTheLoopIsPoppedInTheSameLoop(t *testing.T) {
	var w Wheel[int]
	var every, other Node[int]
	w.Arm(&every, 10)
	w.Arm(&other, 25)
	var times []int64
	for n := w.Pop(50); n != nil; n = w.Pop(50) {
		times = append(times, n.When())
		if n == &every {
			w.Arm(n, n.When()+10)
		}
	}
	require.Equal(t, []int64{10, 20, 25, 30, 40, 50}, times)
	require.EqualValues(t, 60, every.When())
}

func TestArmingForNowGoesBehindWhatWasDue(t *testing.T) {
	var w Wheel[string]
	greedy, other := Node[string]{Of: "greedy"}, Node[string]{Of: "other"}
	w.Arm(&greedy, 1)
	w.Arm(&other, 2)
	var popped []string
	for range 4 { // a bounded loop
		n := w.Pop(50)
		popped = append(popped, n.Of)
		if n == &greedy {
			w.Arm(n, 50)
		}
	}
	require.Equal(t, []string{"greedy", "other", "greedy", "greedy"}, popped)
}

func TestANodeOfAnotherWheelPanics(t *testing.T) {
	var here, there Wheel[int]
	var n Node[int]
	there.Arm(&n, 5)
	require.PanicsWithValue(t, "wheel: this node is armed in another wheel", func() { here.Disarm(&n) })
}

func TestNext(t *testing.T) {
	arm := func(w *Wheel[int], n int, when, step int64) {
		for i := range n {
			w.Arm(new(Node[int]), when+int64(i)*step)
		}
	}
	for _, row := range []struct {
		name  string
		setup func(w *Wheel[int])
		next  int64
	}{
		{"one is exact however far", func(w *Wheel[int]) { arm(w, 1, math.MaxInt64, 0) }, math.MaxInt64},
		{"sixteen in a slot are exact", func(w *Wheel[int]) { arm(w, 16, 5<<30+77, 3) }, 5<<30 + 77},
		{"exact also if the youngest is the first", func(w *Wheel[int]) { arm(w, 16, 5<<30+77, -3) }, 5<<30 + 77 - 45},
		{"seventeen are known to the slot", func(w *Wheel[int]) { arm(w, 17, 5<<30+77, 3) }, 5 << 30},
		{"on level 0 any number is exact", func(w *Wheel[int]) { arm(w, 100, 63, 0) }, 63},
		{"the nearer slot counts", func(w *Wheel[int]) { arm(w, 100, 1<<40, 0); arm(w, 1, 70, 0) }, 70},
		{"late ones are exact", func(w *Wheel[int]) { w.Pop(100); arm(w, 16, 70, -1) }, 55},
		{"many late ones are due since ever", func(w *Wheel[int]) { w.Pop(100); arm(w, 17, 70, -1) }, 0},
		{"due at present", func(w *Wheel[int]) { w.Pop(100); arm(w, 1, 100, 0) }, 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			var w Wheel[int]
			row.setup(&w)
			next, ok := w.Next()
			require.True(t, ok)
			require.Equal(t, row.next, next)
		})
	}
}

func TestAtMostTenLooksAreEarly(t *testing.T) {
	for _, when := range []int64{65, 5000, 1 << 30, 1<<35 + 1, 1<<60 - 1, 1<<62 + 12345, math.MaxInt64} {
		var w Wheel[int]
		for range 2 * nextScan {
			w.Arm(new(Node[int]), when)
		}
		early, now := 0, int64(-1)
		for {
			next, ok := w.Next()
			require.True(t, ok)
			require.Greater(t, next, now, "progress")
			require.LessOrEqual(t, next, when, "not too late")
			now = next
			if w.Pop(now) != nil {
				break
			}
			early++
		}
		require.Equal(t, when, now)
		require.LessOrEqual(t, early, 10)
	}
}

func TestNothingAllocates(t *testing.T) {
	var w Wheel[int]
	nodes := make([]Node[int], 100)
	now := int64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range nodes {
			w.Arm(&nodes[i], now+int64(i)*1_000_003)
		}
		w.Next()
		w.Disarm(&nodes[50])
		for now += 1_000_003 * 200; w.Pop(now) != nil; {
		}
	}))
	require.Zero(t, armed(&w))
}
