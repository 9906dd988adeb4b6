//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// file returns one of n bytes, and what is in it.
func file(t testing.TB, n int) (*os.File, []byte) {
	content := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, content
}

func TestSendFileOfWhatIsNone(t *testing.T) {
	balanced(t)
	f, _ := file(t, 10)
	client, server := unixPair(t)
	hold(t, client)
	_, err := sys.SendFile(-1, f, 0, 10)
	require.Error(t, err)
	_, err = sys.SendFile(client, nil, 0, 10)
	require.Error(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = sys.SendFile(client, r, 0, 10)
	require.Error(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, w.Close())

	require.NoError(t, sys.Close(server))
	_, err = sys.SendFile(client, f, 0, 10)
	require.Error(t, err, "and no end of the program by SIGPIPE")
	require.NoError(t, f.Close())
	_, err = sys.SendFile(client, f, 0, 10)
	require.Error(t, err)
}
