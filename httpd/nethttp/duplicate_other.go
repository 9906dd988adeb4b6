//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package nethttp

import (
	"errors"
	"os"
)

func duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }
