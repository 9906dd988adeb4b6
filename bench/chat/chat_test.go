package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunMeasuresEachDeliveryAndJudgesTheP99(t *testing.T) {
	o := Options{Visitors: 120, Talkers: 3, Lines: 6, Size: 200, Reactors: 2, Every: 100 * time.Millisecond, Max: time.Nanosecond}
	var out strings.Builder
	require.ErrorContains(t, run(context.Background(), &out, o), "the p99, ")
	require.Len(t, strings.Split(strings.TrimSpace(out.String()), "\n"), 4, out.String())
}

// What was broken: the error was lost in a panic.
func TestVisitorsThatFindNobody(t *testing.T) {
	at, free, err := server.Reserve()
	require.NoError(t, err)
	defer free()
	_, err = enter(context.Background(), at, Options{Visitors: 2})
	require.ErrorIs(t, err, unix.ECONNREFUSED)
}

func TestFramesThatHaveComeInPart(t *testing.T) {
	short, long := "\x81\x02hi", "\x81\x7e\x01\x00"+strings.Repeat("x", 256)
	for n := range len(short) {
		_, _, size := frame([]byte(short)[:n])
		require.Zero(t, size)
	}
	opcode, payload, size := frame([]byte(short + long))
	require.Equal(t, []any{byte(1), "hi", 4}, []any{opcode, string(payload), size})
	for n := range len(long) {
		_, _, size := frame([]byte(long)[:n])
		require.Zero(t, size)
	}
	_, payload, size = frame([]byte(long + "\x81"))
	require.Equal(t, []int{256, 260}, []int{len(payload), size})
}
