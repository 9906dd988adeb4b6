package future_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func seen(int, error) {}

// What waits for a future says so.
func TestWaitsForFutures(t *testing.T) {
	for name, c := range map[string]struct {
		begin    func(s *act.Scheduler, f *future.Future[int])
		pending  string
		resolved string // what is said when f is resolved
	}{
		"Await":  {func(s *act.Scheduler, f *future.Future[int]) { s.Spawn(f.Await()) }, "a future", ""},
		"Handle": {func(_ *act.Scheduler, f *future.Future[int]) { f.Handle(seen) }, "a future, for future_test.seen", ""},
		"All":    {func(s *act.Scheduler, f *future.Future[int]) { future.All(s, f, future.New[int](s)) }, "a future, number 1 of 2", "a future, number 2 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := act.New(act.Config{})
			t.Cleanup(func() { _ = s.Close() })
			f := future.New[int](s)
			said := func() string {
				servertest.Step(t, s)
				return strings.ReplaceAll(strings.Join(servertest.Said(s), ", "), "github.com/daimon-go/daimon/", "")
			}
			c.begin(s, f)
			require.Equal(t, c.pending, said())
			require.NoError(t, f.Resolve(1))
			require.Equal(t, c.resolved, said())
		})
	}
}
