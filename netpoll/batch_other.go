//go:build !linux

package netpoll

import (
	"errors"
	"fmt"
)

// ring cannot be opened, so nothing else is reached.
type ring struct{}

func (*ring) open(int) error {
	return fmt.Errorf("netpoll: only Linux has io_uring: %w", errors.ErrUnsupported)
}
func (*ring) room() int    { return 1 }
func (*ring) do([]Call)    {}
func (*ring) close() error { return nil }
