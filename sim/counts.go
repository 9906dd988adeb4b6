package sim

import (
	"maps"
	"slices"

	"github.com/daimon-go/daimon/act"
)

// kind counts the tasks of a kind on a runner.
type kind struct{ spawned, turns uint64 }

// kind returns the counts of t's kind.
func (r *runner) kind(t *act.Task) *kind {
	name := r.s.Internals().Kind(t)
	k := r.kinds[name]
	if k == nil {
		k = &kind{}
		r.kinds[name] = k
	}
	return k
}

// count adds the counts of the scheduler and its Locals to the history, and the world's own counts of each kind of
// task: a server that counts otherwise in a second run has another history. The world's own counts must agree.
func (r *runner) count() {
	counts := map[string]uint64{}
	add := func(name string, n uint64) { counts[name] += n }
	r.s.Internals().Counts(add)
	if n := counts["turns_total"]; n != r.begun {
		r.w.Errorf("%v has counted %d turns, of %d", r, n, r.begun)
	}
	if n := counts["passes_total"]; n != uint64(r.passes) {
		r.w.Errorf("%v has counted %d passes, of %d", r, n, r.passes)
	}
	for name, k := range r.kinds {
		add("spawned "+name, k.spawned)
		add("turns "+name, k.turns)
	}
	h := &r.w.history
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		h.content([]byte(name))
		h.hash = mix(h.hash ^ counts[name])
	}
}
