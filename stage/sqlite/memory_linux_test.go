package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

func init() {
	children["no memory"] = commitWithoutMemory
}

// A Commit for which SQLite gets no memory has failed for a reason that may pass.
func TestNoMemoryForACommit(t *testing.T) {
	out, err := startChild(t, "no memory", newPath(t))()
	require.NoError(t, err, out)
	require.Contains(t, out, "true sqlite: finish")
	require.Contains(t, out, "out of memory")
}

// commitWithoutMemory may have 400 MB more when SQLite wants 900 MB at once.
func commitWithoutMemory(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		return err
	}
	if _, err := s.Enqueue(ctx, stage.NewTask{Kind: "a", Stage: "CREATED"}); err != nil {
		return err
	}
	tasks, err := s.Claim(ctx, stage.Claim{
		Kinds: []string{"a"}, Limit: 1, Length: time.Minute, Shows: working,
	})
	if err != nil {
		return err
	}
	if err := allow(400 << 20); err != nil {
		return err
	}
	err = s.Finish(ctx, tasks[0].Lease(), last, func(ctx context.Context, tx stage.Tx) error {
		_, err := sqlite.SQL(tx).Exec(`CREATE TABLE large AS SELECT randomblob(900000000)`)
		return err
	})
	fmt.Println(errors.Is(err, stage.ErrUnavailable), err)
	return nil
}

// allow lets the process map this many bytes more.
func allow(more uint64) error {
	var pages, rest uint64
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(string(text), &pages, &rest); err != nil {
		return err
	}
	most := pages*uint64(os.Getpagesize()) + more
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most})
}
