//go:build dragonfly || freebsd || netbsd

package netpoll

import "golang.org/x/sys/unix"

const noSignal = unix.MSG_NOSIGNAL

// keepAliveTimes: DragonFly before 5.8 counted milliseconds, and probes there more eagerly.
func keepAliveTimes(fd, seconds int) error {
	if err := setsockopt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds); err != nil {
		return err
	}
	return setsockopt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds)
}
