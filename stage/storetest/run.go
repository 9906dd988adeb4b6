package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/store"
)

// Harness is a store to be tested, empty, and what the tests need to control it: see Run.
type Harness struct {
	Store store.Store // the store, without tasks

	// Again returns a second connection to the same tasks, such as another process would have. For a store that only one
	// process can use, it returns Store.
	Again func() store.Store

	// Advance sets the store's clock forward, or back, by whole milliseconds. Otherwise the clock stands still.
	Advance func(time.Duration)
}

// Run tests a store. open is called once for each test, and registers with t.Cleanup the closing of the store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		do   func(f *fixture)
	}{
		{"a new task", testEnqueue},
		{"a new task that is due later", testLater},
		{"times that are far away", testFarTimes},
		{"keys", testKeys},
		{"keys within a time", testKeyWindow},
		{"keys that are refused", testKeyNames},
		{"ticks", testTicks},
		{"data", testData},
		{"bytes are not shared", testBytes},
		{"names", testNames},
		{"list", testList},
		{"purge", testPurge},

		{"what a claim gives", testClaim},
		{"the order of claims", testClaimOrder},
		{"a claim with priorities", testPriorities},
		{"what a claim shows", testClaimShows},

		{"finish", testFinish},
		{"a commit that fails", testCommitFails},
		{"return", testReturn},
		{"failures are texts", testFailure},
		{"heartbeats renew", testHeartbeatRenews},
		{"records of failures", testFailures},
		{"the record of lost workers", testFailuresOfLost},
		{"progress", testProgress},

		{"requests in every condition", testRequests},
		{"leases in every condition", testLeases},

		{"ended contexts", testEndedContext},
		{"a context that ends while waiting", testContextEnds},

		{"claims at once", testClaimsAtOnce},
		{"keys at once", testKeysAtOnce},
		{"requests at once", testRequestsAtOnce},
		{"finishes at once", testFinishesAtOnce},
		{"heartbeats beside a slow commit", testHeartbeatBeside},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(newFixture(t, open)) })
	}
	t.Run("random", func(t *testing.T) { Random(t, 1, open) })
}

// fixture is a harness in a test. The connections a and b see what the other writes.
type fixture struct {
	*require.Assertions
	t       *testing.T
	ctx     context.Context // ends when something hangs
	a, b    store.Store
	advance func(time.Duration)
}

func newFixture(t *testing.T, open func(t *testing.T) Harness) *fixture {
	h := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return &fixture{require.New(t), t, ctx, h.Store, h.Again(), h.Advance}
}

// Most tests use these. The stages are the stages of a chain: CREATED, WORKING, DONE.
const (
	length  = 10 * time.Second
	created = "CREATED"
	working = "WORKING"
	done    = "DONE"
)

var passage = store.Passage{From: working, To: done}

// last is passage at the end of a chain.
var last = store.Passage{From: working, To: done, Last: true}

// enqueue adds a task.
func (f *fixture) enqueue(kind string) store.ID {
	f.t.Helper()
	return f.enqueued(store.NewTask{Kind: kind, Stage: created, Data: []byte("data of " + kind)})
}

func (f *fixture) enqueued(n store.NewTask) store.ID {
	f.t.Helper()
	ids, err := f.a.Enqueue(f.ctx, n)
	f.NoError(err)
	f.Len(ids, 1)
	return ids[0]
}

// keep has a claim show tasks of the kinds at the stage working, wherever they are found.
func keep(kinds ...string) (all []store.Show) {
	kinds = slices.Clone(kinds)
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		for _, found := range []string{created, done} {
			for _, lost := range []bool{false, true} {
				all = append(all, store.Show{Kind: kind, Found: found, Lost: lost, Stage: working})
			}
		}
	}
	return all
}

// claims claims at most limit tasks of the kinds.
func (f *fixture) claims(limit int, kinds ...string) []store.Task {
	f.t.Helper()
	tasks, err := f.a.Claim(f.ctx, store.Claim{Worker: "ann", Kinds: kinds, Limit: limit, Length: length, Shows: keep(kinds...)})
	f.NoError(err)
	return tasks
}

// claim claims the one task of the kind.
func (f *fixture) claim(kind string) store.Task {
	f.t.Helper()
	tasks := f.claims(10, kind)
	f.Len(tasks, 1)
	return tasks[0]
}

// claimed returns a new task that has been claimed.
func (f *fixture) claimed(kind string) store.Task {
	f.t.Helper()
	f.enqueue(kind)
	return f.claim(kind)
}

// get returns the task, as the other connection sees it.
func (f *fixture) get(id store.ID) store.Task {
	f.t.Helper()
	t, err := f.b.Get(f.ctx, id)
	f.NoError(err)
	return t
}

// same requires that the task has not changed.
func (f *fixture) same(was store.Task) {
	f.t.Helper()
	f.Equal(plain(was), plain(f.get(was.ID)))
}

// yes requires that a request has changed something.
func (f *fixture) yes(made bool, err error) {
	f.t.Helper()
	f.NoError(err)
	f.True(made)
}

// failure returns the error of a call that returns a value, too.
func failure[T any](_ T, err error) error { return err }

// plain makes tasks comparable: times in UTC, without a monotonic clock.
func plain(t store.Task) store.Task {
	for _, at := range []*time.Time{&t.Due, &t.Created, &t.Changed} {
		if !at.IsZero() {
			*at = at.Round(0).UTC()
		}
	}
	return t
}

func ids(tasks []store.Task) []store.ID {
	all := []store.ID{}
	for _, t := range tasks {
		all = append(all, t.ID)
	}
	return all
}
