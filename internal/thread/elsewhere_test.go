//go:build !linux

package thread

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPinSaysThatThereIsNoCall(t *testing.T) {
	err := Pin(0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "thread: pin to CPU 0")
}
