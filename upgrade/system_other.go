//go:build !unix

package upgrade

import "os"

// usual is the signal that starts an upgrade by default: none here.
var usual os.Signal

func closeOnExec(int) {}
