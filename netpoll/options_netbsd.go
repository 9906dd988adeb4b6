package netpoll

import "golang.org/x/sys/unix"

const (
	noSignal          = unix.MSG_NOSIGNAL
	spreadsTCP        = false
	inheritsKeepAlive = false
)

var keepAliveTimes = []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL}

// dontFragment: there is no such option for IPv4.
const dontFragment = 0
