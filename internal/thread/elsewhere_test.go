//go:build !linux

package thread

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBindSaysThatThereIsNoCall(t *testing.T) {
	err := Bind(0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "thread: bind to CPU 0")
}
