package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunPrintsEveryPairAndJudgesTheMedian(t *testing.T) {
	o := Options{Pairs: 2, Subscribers: 5, Messages: 3, Bursts: 10, Size: 20, Max: 0.001}
	var out strings.Builder
	require.ErrorContains(t, run(context.Background(), &out, o), "the median ratio two/one, ")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2+2+4, out.String())
	require.Equal(t, strings.Fields("pair two one control two/one control/one"), strings.Fields(lines[1]))
}
