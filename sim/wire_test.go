package sim

import (
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bytes that a reset overtakes are lost. Bytes that had arrived before are not.
func TestResetOvertakes(t *testing.T) {
	lost, kept := 0, 0
	for seed := range uint64(50) {
		b := newBench(t, Options{Seed: seed})
		e, fd := b.pair()
		_, _ = e.send(nil, []byte("arrived"))
		b.settle()
		_, _ = e.send(nil, []byte(" on its way"))
		e.reset()
		b.settle()
		got, err := b.hear(fd)
		require.NoError(t, err)
		switch got {
		case "arrived":
			lost++
		case "arrived on its way":
			kept++
		}
		_, err = b.hear(fd)
		require.Equal(t, syscall.ECONNRESET, err)
		_, err = b.hear(fd)
		require.Equal(t, io.EOF, err)
	}
	require.Positive(t, lost)
	require.Positive(t, kept)
}
