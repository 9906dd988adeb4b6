package stage_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// good is the least that an engine needs.
func good() stage.Config {
	return stage.Config{
		Store:      memory.New(nil),
		Kinds:      map[string]stage.Kind{"report": {Chain: reportChain()}},
		Processors: map[string]stage.Processor{},
	}
}

func reportChain() *stage.Chain {
	return stage.Begin("CREATED").Then("LOADING_DATA", "load", "DATA_LOADED").Then("BUILDING_REPORT", "build", "FINISHED")
}

func TestAChainDoesNotChange(t *testing.T) {
	c := reportChain()
	printed, sent := c.Then("PRINTING", "print", "PRINTED"), c.Then("SENDING", "send", "SENT")
	c.Stages()[0] = "changed"
	require.Equal(t, reportChain().Stages(), c.Stages())
	require.Equal(t, "PRINTED", printed.Stages()[6])
	require.Equal(t, "SENT", sent.Stages()[6])
}

// Everything that is wrong is said at once.
func TestInvalidConfigs(t *testing.T) {
	hourly := stage.Every(time.Hour)
	chain := func(c *stage.Chain) func(*stage.Config) {
		return func(cfg *stage.Config) { cfg.Kinds["x"] = stage.Kind{Chain: c} }
	}
	for name, row := range map[string]struct {
		change func(*stage.Config)
		says   []string
	}{
		"nothing is there": {func(cfg *stage.Config) { *cfg = stage.Config{} },
			[]string{"Store is missing", "Kinds is empty", "Processors is missing"}},
		"names that stores cannot keep": {func(cfg *stage.Config) {
			cfg.Worker = "\xff"
			cfg.Kinds["a\x00"] = stage.Kind{Chain: stage.Begin("A\xff").Then("B", "load", "C\x00")}
		}, []string{
			`Kinds has a kind that is not UTF-8 without NUL: "a\x00"`,
			`Kinds["a\x00"].Chain has a name that is not UTF-8 without NUL: "A\xff"`,
			`Kinds["a\x00"].Chain has a name that is not UTF-8 without NUL: "C\x00"`,
			`Worker is not UTF-8 without NUL: "\xff"`,
		}},
		"what is nil, or of nothing": {func(cfg *stage.Config) {
			cfg.Kinds[""], cfg.Middleware, cfg.Queues = stage.Kind{}, []func(stage.Processor) stage.Processor{nil}, []string{"reports", ""}
		}, []string{
			"Kinds has a kind without a name", `Kinds[""].Chain is missing`, "Middleware has a nil",
			`Queues has a queue that no kind has: "reports"`,
		}},
		"what is negative": {func(cfg *stage.Config) {
			cfg.Kinds["report"] = stage.Kind{Chain: reportChain(), Workers: -1, Attempts: -2, Timeout: -3}
			cfg.Workers, cfg.Poll, cfg.Heartbeat = -1, -4, -5
			cfg.Upkeep.Retention = map[store.Status]time.Duration{store.Normal: -6, store.Failed: 0}
		}, []string{
			`Kinds["report"].Workers is negative: -1`, `Kinds["report"].Attempts is negative: -2`, `Kinds["report"].Timeout is negative: -3ns`,
			"Workers is negative: -1", "Poll is negative: -4ns",
			"Heartbeat is negative: -5ns", `Upkeep.Retention["NORMAL"] is negative: -6ns`,
		}},
		"a negative lease":  {func(cfg *stage.Config) { cfg.Lease = -time.Second }, []string{"Lease is negative: -1s"}},
		"a beat too slow":   {func(cfg *stage.Config) { cfg.Heartbeat = 15 * time.Second }, []string{"Heartbeat (15s) must be below Lease (15s)"}},
		"a lease too short": {func(cfg *stage.Config) { cfg.Lease = 10 }, []string{"Lease is less than stores can count: 10ns"}},
		"a beat too long":   {func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = 10e6, 20e6 }, []string{"Heartbeat (20ms) must be below Lease (10ms)"}},
		"a retention of what has no end": {func(cfg *stage.Config) {
			cfg.Upkeep.Retention = map[store.Status]time.Duration{store.Suspended: time.Hour}
		}, []string{`Upkeep.Retention has a status in which no task ends: "SUSPENDED"`}},
		"periodic tasks": {func(cfg *stage.Config) {
			cfg.Upkeep.Periodic = map[string]stage.Periodic{"b": {Kind: "copy", Missed: 1001}}
			for _, name := range []string{"", "a\x00", strings.Repeat("n", 257)} {
				cfg.Upkeep.Periodic[name] = stage.Periodic{Kind: "report", Schedule: hourly}
			}
		}, []string{
			`Upkeep.Periodic has a name that is not UTF-8 without NUL of 1 to 256 bytes: ""`,
			`Upkeep.Periodic has a name that is not UTF-8 without NUL of 1 to 256 bytes: "a\x00"`,
			`Upkeep.Periodic has a name that is not UTF-8 without NUL of 1 to 256 bytes: "` + strings.Repeat("n", 257) + `"`,
			`Upkeep.Periodic["b"].Kind is none of Kinds: "copy"`, `Upkeep.Periodic["b"].Schedule is missing`,
			`Upkeep.Periodic["b"].Missed is not between -1 and 1000: 1001`,
		}},
		"a chain without a dynamic stage": {chain(stage.Begin("A")), []string{`Kinds["x"].Chain needs a dynamic stage`}},
		"the zero chain":                  {chain(&stage.Chain{}), []string{`Kinds["x"].Chain needs a dynamic stage`}},
		"a chain without names": {chain(stage.Begin("").Then("", "p", "")), []string{
			`Kinds["x"].Chain has no name for stage 1`, `Kinds["x"].Chain has no name for stage 2`, `Kinds["x"].Chain has no name for stage 3`,
		}},
		"a chain with names twice": {chain(stage.Begin("A").Then("B", "", "A").Then("B", "p", "C").Then("C", "p", "D")), []string{
			`Kinds["x"].Chain has no processor for the dynamic stage "B"`, `Kinds["x"].Chain has A twice`, `Kinds["x"].Chain has B twice`,
			`Kinds["x"].Chain has C twice`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			row.change(&cfg)
			e, err := stage.New(cfg)
			require.Error(t, err)
			require.ElementsMatch(t, row.says, strings.Split(strings.ReplaceAll(err.Error(), "stage: Config.", ""), "\n"))
			require.Nil(t, e)
		})
	}
}

func TestShortLeasesHaveHeartbeats(t *testing.T) {
	for _, lease := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, time.Second, time.Hour} {
		cfg := good()
		cfg.Lease = lease
		_, err := stage.New(cfg)
		require.NoError(t, err, "%v", lease)
	}
}

// asked is a Store that only notes what it is asked for.
type asked struct {
	store.Store
	claim store.Claim
}

func (s *asked) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	s.claim = c
	return s.Store.Claim(ctx, c)
}

func TestZeroConfig(t *testing.T) {
	s := &asked{Store: memory.New(nil)}
	cfg := good()
	cfg.Store = s
	e, err := stage.New(cfg)
	require.NoError(t, err)
	_, err = e.Fire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, s.claim.Limit)
	require.Equal(t, 15*time.Second, s.claim.Length)
	require.Equal(t, []string{"report"}, s.claim.Kinds)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`^%s:%d:\d+$`, host, os.Getpid()), s.claim.Worker)

	first := s.claim.Worker
	e, err = stage.New(cfg)
	require.NoError(t, err)
	_, err = e.Fire(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first, s.claim.Worker, "two engines have two names")
}

// What was broken: a lease of the longest Duration had ended when it began, and such a Poll was none.
func TestLongDurations(t *testing.T) {
	const long = time.Duration(math.MaxInt64)
	e := engineOf(t, memory.New(nil), 1, nothing, func(cfg *stage.Config) { cfg.Lease, cfg.Poll = long, long },
		ofKind(func(k *stage.Kind) { k.Timeout = long }))
	for range 20 { // at random
		require.Greater(t, e.Polling(), 30*365*24*time.Hour)
	}
	enter := enqueued(t, e, "")
	_, err := e.Fire(t.Context())
	require.NoError(t, err)
	e.Expire()
	require.NoError(t, e.Wait(t.Context()))
	require.Equal(t, "1 NORMAL", state(get(t, e.Store(), enter)))
}

func TestBackoffDoubles(t *testing.T) {
	now := time.Unix(1e9, 0)
	cfg := good()
	cfg.Store, cfg.Logger = memory.New(func() time.Time { return now }), zap.NewNop()
	cfg.Kinds["report"] = stage.Kind{Chain: reportChain(), Attempts: 100}
	cfg.Processors = map[string]stage.Processor{"load": func(context.Context, *store.Task) (store.Commit, error) {
		return nil, fmt.Errorf("no luck")
	}}
	e, err := stage.New(cfg)
	require.NoError(t, err)
	id, err := e.Enqueue(t.Context(), "report", nil)
	require.NoError(t, err)
	for n := range 80 {
		task := fires(t, e, id)
		want := 5 * time.Minute
		if n < 9 {
			want = min(want, time.Second<<n)
		}
		require.Equal(t, want, task.Due.Sub(now), "after attempt %d", n+1)
		now = task.Due
	}
}
