package merge_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/merge"
	"github.com/daimon-go/daimon/shutdown"
)

const s = time.Second

func TestOrdersMergeToTheStrictestFieldByField(t *testing.T) {
	both := shutdown.Policy{Turns: 5, Time: 10 * s}
	for name, c := range map[string]struct {
		first, second shutdown.Policy
		merged        merge.Terms
		stricter      bool // whether the second made it so
	}{
		"halt beats a bound and keeps it":      {both, shutdown.Policy{Kind: shutdown.Halt}, merge.Terms{Kind: shutdown.Halt, Turns: 5, Until: 10 * s}, true},
		"fewer turns beat more":                {both, shutdown.Policy{Turns: 4}, merge.Terms{Turns: 4, Until: 10 * s}, true},
		"time joins turns, from its moment":    {shutdown.Policy{Turns: 6}, shutdown.Policy{Time: 10 * s}, merge.Terms{Turns: 6, Until: 11 * s}, true},
		"less time beats more":                 {both, shutdown.Policy{Time: 8 * s}, merge.Terms{Turns: 5, Until: 9 * s}, true},
		"all the time there is is not less":    {both, shutdown.Policy{Time: math.MaxInt64}, merge.Terms{Turns: 5, Until: 10 * s}, false},
		"drop wins over keep":                  {both, shutdown.Policy{Kind: shutdown.Unbounded, Drop: true}, merge.Terms{Turns: 5, Until: 10 * s, Drop: true}, true},
		"the zero policy is thirty seconds":    {shutdown.Policy{Kind: shutdown.Unbounded}, shutdown.Policy{}, merge.Terms{Until: 31 * s, Drop: true}, true},
		"no window beats one":                  {shutdown.Policy{Spread: 5 * s}, shutdown.Policy{Drop: true}, merge.Terms{Kind: shutdown.Unbounded, Leave: s, Drop: true}, true},
		"a shorter window ends earlier":        {shutdown.Policy{Spread: 5 * s}, shutdown.Policy{Spread: 2 * s}, merge.Terms{Kind: shutdown.Unbounded, Leave: 3 * s}, true},
		"a window is not opened again":         {shutdown.Policy{Kind: shutdown.Halt}, shutdown.Policy{Spread: 2 * s}, merge.Terms{Kind: shutdown.Halt}, false},
		"less inactivity beats more":           {shutdown.Policy{Inactivity: 5 * s}, shutdown.Policy{Inactivity: 4 * s}, merge.Terms{Inactivity: 4 * s}, true},
		"each gives what it has of strictness": {shutdown.Policy{Turns: 3, Time: 9 * s}, shutdown.Policy{Turns: 4, Time: 5 * s}, merge.Terms{Turns: 3, Until: 6 * s}, true},
	} {
		t.Run(name, func(t *testing.T) {
			terms, stricter := merge.Terms{}.With(c.first, 0)
			require.True(t, stricter, "the first order is stricter than none")
			terms, stricter = terms.With(c.second, s)
			c.merged.Given = true
			require.Equal(t, c.merged, terms)
			require.Equal(t, c.stricter, stricter)
		})
	}
}

func TestMergingIsCommutativeAssociativeAndIdempotentInTheTerms(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		a, b, c := anyPolicy(r), anyPolicy(r), anyPolicy(r)
		now := time.Duration(r.Int64N(int64(time.Hour)))
		require.Equal(t, merged(now, a, b), merged(now, b, a), "%v and %v", a, b)
		require.Equal(t, merged(now, a, b, c), merged(now, b, c, a), "%v and %v and %v", a, b, c)
		require.Equal(t, merged(now, a, b, c), merged(now, c, b, a), "%v and %v and %v", a, b, c)
		terms := merged(now, a, b)
		again, stricter := terms.With(a, now)
		require.Equal(t, terms, again, "%v once more", a)
		require.False(t, stricter, "%v once more", a)
		later, stricter := terms.With(a, now+s)
		require.Equal(t, terms, later, "%v a second later", a)
		require.False(t, stricter, "%v a second later", a)
	}
}

func merged(now time.Duration, policies ...shutdown.Policy) (terms merge.Terms) {
	for _, p := range policies {
		terms, _ = terms.With(p, now)
	}
	return terms
}

func anyPolicy(r *rand.Rand) shutdown.Policy {
	p := shutdown.Policy{Kind: shutdown.Kind(r.IntN(4)), Drop: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		p.Turns = r.IntN(5)
	}
	if r.IntN(3) == 0 {
		p.Spread = time.Duration(r.IntN(5)) * s
	}
	if r.IntN(3) == 0 {
		p.Inactivity = time.Duration(r.IntN(5)) * s
	}
	switch r.IntN(4) {
	case 0:
		p.Time = time.Duration(r.IntN(5)) * s
	case 1:
		p.Time = math.MaxInt64 - time.Duration(r.IntN(3))
	}
	return p
}

func TestABoundBeyondAllCountingIsTheLargest(t *testing.T) {
	merged, _ := merge.Terms{}.With(shutdown.Policy{Turns: math.MaxInt}, 0)
	require.Equal(t, uint32(min(uint64(math.MaxInt), math.MaxUint32)), merged.Turns) // of an int of 32 bits the largest
}
