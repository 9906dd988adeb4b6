package future_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// node is a future and its model: the futures it was made of, from which each check computes its outcome anew.
type node struct {
	f        *future.Future[int]
	kind     string
	of       []*node
	given    string // of a source, once resolved
	called   string // by its callbacks, in the order in which they were called
	register string // the same, in the order of registration
	derived  bool   // resolved by others only
	now      string // its outcome in the present check
}

// twin returns the outcome that n must have.
func (n *node) twin() string {
	if n.given != "" {
		return n.given
	}
	var values, failures []string
	pending := 0
	for _, o := range n.of {
		w := o.now
		switch {
		case w == "pending":
			pending++
		case isFailure(w):
			failures = append(failures, w)
		default:
			values = append(values, w)
		}
	}
	if pending > 0 || n.kind == "source" {
		return "pending"
	}
	if len(failures) > 0 {
		return strings.Join(failures, "+")
	}
	return n.ofValues(values)
}

func isFailure(outcome string) bool { return strings.HasPrefix(outcome, "x") }

func (n *node) ofValues(values []string) string {
	sum := 0
	for _, v := range values {
		var i int
		_, _ = fmt.Sscan(v, &i)
		sum += i
	}
	switch n.kind {
	case "map":
		sum++
	case "refuse":
		return "x!"
	}
	return fmt.Sprint(sum)
}

// check compares f with its model. The nodes that n was made of come before it.
func (n *node) check(t *testing.T) {
	got, want := outcome(n.f), n.twin()
	require.Equal(t, want, got, n.kind)
	if n.now = want; want == "pending" {
		require.Empty(t, n.called)
	} else {
		require.Equal(t, n.register, n.called)
	}
}

// world makes and resolves futures at random.
type world struct {
	s     *act.Scheduler
	rnd   *rand.Rand
	nodes []*node
}

func (w *world) pick(n int) (some []*node, fs []*future.Future[int]) {
	for range n {
		o := w.nodes[w.rnd.IntN(len(w.nodes))]
		some, fs = append(some, o), append(fs, o.f)
	}
	return some, fs
}

func (w *world) add(n *node) { w.nodes = append(w.nodes, n) }

func (w *world) derive() {
	one, f := w.pick(1)
	several, fs := w.pick(w.rnd.IntN(5))
	switch w.rnd.IntN(4) {
	case 0:
		w.add(&node{kind: "source", f: future.New[int](w.s)})
	case 1:
		w.add(&node{kind: "map", of: one, derived: true, f: future.Map(f[0], func(v int) (int, error) { return v + 1, nil })})
	case 2:
		w.add(&node{kind: "refuse", of: one, derived: true, f: future.Map(f[0], func(v int) (int, error) { return 0, errors.New("x!") })})
	case 3:
		w.add(&node{kind: "sum", of: several, derived: true, f: future.Map(future.All(w.s, fs...), func(vs []int) (sum int, _ error) {
			for _, v := range vs {
				sum += v
			}
			return sum, nil
		})})
	}
}

func (w *world) resolve(t *testing.T) {
	one, f := w.pick(1)
	n := one[0]
	if n.derived {
		return
	}
	if n.given != "" {
		require.ErrorIs(t, f[0].Resolve(99), future.ErrResolved)
		require.ErrorIs(t, f[0].Fail(errBad), future.ErrResolved)
		return
	}
	called := n.called
	defer func() { require.Equal(t, called, n.called, "never within Resolve") }()
	if w.rnd.IntN(3) == 0 {
		n.given = fmt.Sprintf("x%d", len(w.nodes))
		_ = f[0].Fail(errors.New(n.given))
		return
	}
	n.given = fmt.Sprint(w.rnd.IntN(10))
	var v int
	_, _ = fmt.Sscan(n.given, &v)
	_ = f[0].Resolve(v)
}

func (w *world) register(t *testing.T) {
	one, f := w.pick(1)
	n, c := one[0], string(rune('a'+w.rnd.IntN(26)))
	called := n.called
	defer func() { require.Equal(t, called, n.called, "never within the call that registers it") }()
	n.register += c
	f[0].Handle(func(int, error) { n.called += c })
}

func TestFuturesAgainstASlowTwin(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, _ := stepped(t)
			w := &world{s: s, rnd: rand.New(rand.NewPCG(seed, 1))}
			w.add(&node{kind: "source", f: future.New[int](s)})
			for range 300 {
				switch w.rnd.IntN(8) {
				case 0, 1:
					w.derive()
				case 2, 3:
					w.resolve(t)
				case 4, 5:
					w.register(t)
				case 6:
					_, err := s.Step(w.rnd.IntN(4))
					require.NoError(t, err)
				case 7:
					servertest.Step(t, s)
					for _, n := range w.nodes {
						n.check(t)
					}
				}
			}
			servertest.Step(t, s)
			kinds := map[string]bool{}
			for _, n := range w.nodes {
				n.check(t)
				kinds[n.kind] = true
			}
			require.Greater(t, len(kinds), 2, "a seed that tests something: %v", kinds)
		})
	}
}
