//go:build dragonfly || freebsd

package netpoll

import "golang.org/x/sys/unix"

const (
	noSignal          = unix.MSG_NOSIGNAL
	spreadsTCP        = true
	inheritsKeepAlive = true
)

// keepAliveTimes: DragonFly before 5.8 counted milliseconds, and probes there more eagerly.
var keepAliveTimes = []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL}
