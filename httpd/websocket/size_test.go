package websocket

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Beside this an idle connection has its listener.Conn, with its stream at most 80 bytes.
func TestSizeOfAConnAtRest(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(session{}), uintptr(256))
	require.LessOrEqual(t, unsafe.Sizeof(dialled{}), uintptr(48), "what a client's has beside the session")
}
