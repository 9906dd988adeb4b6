//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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

// sends skips a system that has to read a file.
func sends(t *testing.T, err error) {
	if err == unix.EINVAL || errors.Is(err, errors.ErrUnsupported) {
		t.Skip("files cannot be sent here")
	}
	require.NoError(t, err)
}

// It returns EAGAIN only when nothing was taken, and poll(2) reports when there is room again.
func TestSendFileReturnsHowMuchWasTaken(t *testing.T) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			balanced(t)
			f, content := file(t, 8<<20)
			client, server := pair(t)
			hold(t, server)
			heard := make(chan []byte)
			full := 0
			for sent := 0; sent < len(content); {
				n, err := sys.SendFile(client, f, int64(sent), len(content)-sent)
				if err == unix.EAGAIN {
					if full++; full == 1 {
						go func() { heard <- drain(server) }()
					}
					polled(t, client, unix.POLLOUT)
					continue
				}
				sends(t, err)
				require.Positive(t, n)
				sent += n
			}
			require.Positive(t, full, "never was full: not the case this test is about")
			require.NoError(t, sys.Close(client))
			require.True(t, bytes.Equal(content, <-heard))
			require.NoError(t, f.Close())
		})
	}
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
