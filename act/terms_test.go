package act

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
)

const sec = time.Second

func TestOrdersMergeToTheStrictestFieldByField(t *testing.T) {
	both := shutdown.Policy{Turns: 5, Time: 10 * sec}
	for name, c := range map[string]struct {
		first, second shutdown.Policy
		merged        terms
	}{
		"halt beats a bound and keeps it":      {both, shutdown.Policy{Kind: shutdown.Halt}, terms{kind: shutdown.Halt, turns: 5, until: 10 * sec}},
		"fewer turns beat more":                {both, shutdown.Policy{Turns: 4}, terms{turns: 4, until: 10 * sec}},
		"time joins turns, from its moment":    {shutdown.Policy{Turns: 6}, shutdown.Policy{Time: 10 * sec}, terms{turns: 6, until: 11 * sec}},
		"less time beats more":                 {both, shutdown.Policy{Time: 8 * sec}, terms{turns: 5, until: 9 * sec}},
		"all the time there is is not less":    {both, shutdown.Policy{Time: math.MaxInt64}, terms{turns: 5, until: 10 * sec}},
		"drop wins over keep":                  {both, shutdown.Policy{Kind: shutdown.Unbounded, Drop: true}, terms{turns: 5, until: 10 * sec, drop: true}},
		"the zero policy is thirty seconds":    {shutdown.Policy{Kind: shutdown.Unbounded}, shutdown.Policy{}, terms{until: 31 * sec, drop: true}},
		"no window beats one":                  {shutdown.Policy{Spread: 5 * sec}, shutdown.Policy{Drop: true}, terms{kind: shutdown.Unbounded, leave: sec, drop: true}},
		"a shorter window ends earlier":        {shutdown.Policy{Spread: 5 * sec}, shutdown.Policy{Spread: 2 * sec}, terms{kind: shutdown.Unbounded, leave: 3 * sec}},
		"a window is not opened again":         {shutdown.Policy{Kind: shutdown.Halt}, shutdown.Policy{Spread: 2 * sec}, terms{kind: shutdown.Halt}},
		"less inactivity beats more":           {shutdown.Policy{Inactivity: 5 * sec}, shutdown.Policy{Inactivity: 4 * sec}, terms{inactivity: 4 * sec}},
		"each gives what it has of strictness": {shutdown.Policy{Turns: 3, Time: 9 * sec}, shutdown.Policy{Turns: 4, Time: 5 * sec}, terms{turns: 3, until: 6 * sec}},
	} {
		c.merged.given = true
		require.Equal(t, c.merged, terms{}.with(c.first, 0).with(c.second, sec), name)
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
		require.Equal(t, merged(now, a, b), merged(now, a, b, a), "%v once more", a)
		require.Equal(t, merged(now, a, b), merged(now, a, b).with(a, now+sec), "%v a second later", a)
	}
}

func merged(now time.Duration, policies ...shutdown.Policy) (all terms) {
	for _, p := range policies {
		all = all.with(p, now)
	}
	return all
}

func anyPolicy(r *rand.Rand) shutdown.Policy {
	p := shutdown.Policy{Kind: shutdown.Kind(r.IntN(4)), Drop: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		p.Turns = r.IntN(5)
	}
	if r.IntN(3) == 0 {
		p.Spread = time.Duration(r.IntN(5)) * sec
	}
	if r.IntN(3) == 0 {
		p.Inactivity = time.Duration(r.IntN(5)) * sec
	}
	switch r.IntN(4) {
	case 0:
		p.Time = time.Duration(r.IntN(5)) * sec
	case 1:
		p.Time = math.MaxInt64 - time.Duration(r.IntN(3))
	}
	return p
}

func TestABoundBeyondAllCountingIsTheLargest(t *testing.T) {
	all := terms{}.with(shutdown.Policy{Turns: math.MaxInt}, 0)
	require.Equal(t, uint32(min(uint64(math.MaxInt), math.MaxUint32)), all.turns) // of an int of 32 bits the largest
}
