package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A scheduler that is stuck answers with an old count of what is open on all of them.
func TestSumHasTheLatestCountOfOpenConnections(t *testing.T) {
	r := &Report{Schedulers: []*Scheduler{
		{Late: 3 * time.Second, Services: []Service{{Name: "tcp", Open: 5, Accepted: 5}}},
		{Services: []Service{{Name: "tcp", Open: 10, Accepted: 6}}},
	}}
	sum := r.Sum().Services
	require.Len(t, sum, 1)
	require.EqualValues(t, 10, sum[0].Open)
	require.EqualValues(t, 11, sum[0].Accepted)
}
