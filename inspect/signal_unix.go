//go:build unix

package inspect

import (
	"os"
	"syscall"
)

// asks are the signals on which a file is written.
var asks = []os.Signal{syscall.SIGUSR1}
