package e2e

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// input is a pipe to the program's standard input.
func input(t *testing.T) (reads, writes *os.File) {
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = reads.Close()
		_ = writes.Close()
	})
	return reads, writes
}

func TestRemind(t *testing.T) {
	t.Parallel()
	outside(t)
	t.Run("says everything in its time, and in the end that there was something else", func(t *testing.T) {
		in, out := input(t)
		_, err := io.WriteString(out, "3s last\n0s at once\nsoon nothing\n\n1500ms first of two\n0s")
		require.NoError(t, err)
		require.NoError(t, out.Close())
		start := time.Now()
		p := run(t, "remind", in)
		require.Equal(t, 1, p.Exit(t))
		require.GreaterOrEqual(t, time.Since(start), 3*time.Second)
		lines := p.Lines()
		require.ElementsMatch(t, []string{"at once", "", "first of two", "last"}, lines)
		require.Equal(t, []string{"first of two", "last"}, lines[2:])
		require.Contains(t, p.Said(), `not understood: \"soon nothing\"`)
		require.Contains(t, p.Said(), `not understood: \"\"`)
	})

	t.Run("says what came before a line that is too long, and that it did not go on", func(t *testing.T) {
		in, out := input(t)
		p := run(t, "remind", in)
		_, err := io.WriteString(out, "100ms before\n"+strings.Repeat("x", bufio.MaxScanTokenSize+1))
		require.True(t, err == nil || errors.Is(err, syscall.EPIPE), err)
		require.NoError(t, out.Close())
		require.Equal(t, 1, p.Exit(t))
		require.Equal(t, "before\n", p.Out())
		require.Contains(t, p.Said(), "line 2: bufio.Scanner: token too long")
	})

	t.Run("an argument", func(t *testing.T) {
		p := run(t, "remind", nil, "5s", "tea")
		require.Equal(t, 2, p.Exit(t))
		require.Equal(t, "remind: unexpected argument \"5s\"\n", p.Said())
	})

	t.Run("does not wait for the end of its input, and ends with it", func(t *testing.T) {
		in, out := input(t)
		p := run(t, "remind", in)
		for _, word := range []string{"one", "two", "three"} {
			_, err := io.WriteString(out, "1ms "+word+"\n")
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				lines := p.Lines()
				return lines[len(lines)-1] == word
			}, patience, time.Millisecond)
		}
		require.NoError(t, out.Close())
		require.Zero(t, p.Exit(t))
	})

	t.Run("a signal ends it at once and it says what was left", func(t *testing.T) {
		in, out := input(t)
		p := run(t, "remind", in)
		_, err := io.WriteString(out, "1h never\n0s now\n")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return p.Out() == "now\n" }, patience, time.Millisecond)
		p.Signal(t, syscall.SIGTERM)
		require.Equal(t, 1, p.Exit(t))
		require.Contains(t, p.Said(), "remind: shutdown: dropped 1 task, 1 demon")
	})
}
