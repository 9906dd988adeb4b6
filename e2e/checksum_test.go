package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/exectest"
)

func TestChecksum(t *testing.T) {
	t.Parallel()
	outside(t)
	dir := t.TempDir()

	var names, want []string
	for i := range 200 { // more than are read at a time
		name, content := filepath.Join(dir, fmt.Sprint(i)), fmt.Appendf(nil, "content of file %d", i)
		require.NoError(t, os.WriteFile(name, content, 0o600))
		names = append(names, name)
		want = append(want, fmt.Sprintf("%x  %s", sha256.Sum256(content), name))
	}
	p := run(t, "checksum", nil, names...)
	require.Zero(t, p.Exit(t))
	require.ElementsMatch(t, want, p.Lines())

	t.Run("the thread has time for the progress", func(t *testing.T) {
		endless := filepath.Join(dir, "endless")
		require.NoError(t, unix.Mkfifo(endless, 0o600))
		p := run(t, "checksum", nil, "-every", "1ms", endless)
		out, err := os.OpenFile(endless, os.O_RDWR, 0)
		require.NoError(t, err)
		defer out.Close()
		report := regexp.MustCompile(`(?m)^[1-9]\d* bytes read, 1 file to go$`)
		sum, piece := sha256.New(), content(1, 1<<20)
		exectest.Eventually(t, patience, "reports while it reads", func() bool {
			require.NoError(t, out.SetWriteDeadline(time.Now().Add(patience)))
			_, err := out.Write(piece)
			require.NoError(t, err)
			_, _ = sum.Write(piece)
			return len(report.FindAllString(p.Said(), -1)) > 10
		})
		require.NoError(t, out.Close())
		require.Zero(t, p.Exit(t))
		require.Equal(t, []string{fmt.Sprintf("%x  %s", sum.Sum(nil), endless)}, p.Lines())
	})

	t.Run("a file that cannot be read disturbs no other", func(t *testing.T) {
		p := run(t, "checksum", nil, names[0], filepath.Join(dir, "absent"), names[1])
		require.Equal(t, 1, p.Exit(t))
		require.ElementsMatch(t, want[:2], p.Lines())
		require.Contains(t, p.Said(), "absent: no such file")
	})

	t.Run("no file", func(t *testing.T) {
		p := run(t, "checksum", nil)
		require.Equal(t, 2, p.Exit(t))
		require.Empty(t, p.Out())
		require.Equal(t, "checksum: missing file\n", p.Said())
	})

	t.Run("times that cannot be", func(t *testing.T) {
		for every, says := range map[string]string{
			"5":   `invalid value "5" for flag -every: it needs a unit, as in 5s`,
			"0s":  "-every must be above 0: 0s",
			"-1s": "-every must be above 0: -1s",
		} {
			p := run(t, "checksum", nil, "-every", every, names[0])
			require.Equal(t, 2, p.Exit(t))
			require.Equal(t, "checksum: "+says+"\n", p.Said())
		}
	})
}
