package checksum_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/checksum/checksum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Opening a pipe blocks until there is a writer. Meanwhile the scheduler reports the progress: the test writes only after
// ten reports.
func TestTicksWhileACallIsBlocked(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	reports, progress := io.Pipe()
	var out strings.Builder
	w := checksum.Work{Out: &out, Progress: progress}
	written := make(chan error, 1)
	go func() {
		line := make([]byte, 100)
		for range 10 {
			if n, err := reports.Read(line); err != nil || string(line[:n]) != "0 bytes read, 1 file to go\n" {
				written <- fmt.Errorf("reported %q: %v", line[:n], err)
				break
			}
		}
		written <- os.WriteFile(pipe, []byte("late"), 0)
		_, _ = io.Copy(io.Discard, reports)
	}()
	require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: 1}, w.Setup(time.Millisecond, pipe)))
	require.NoError(t, progress.Close())
	require.NoError(t, <-written)
	require.Equal(t, fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("late")), pipe), out.String())
}
