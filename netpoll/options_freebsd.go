package netpoll

import "golang.org/x/sys/unix"

const (
	noSignal          = unix.MSG_NOSIGNAL
	spreadsTCP        = true
	inheritsKeepAlive = true
)

var keepAliveTimes = []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL}

// dontFragment is the option of IPv4 that sets the bit.
const dontFragment = unix.IP_DONTFRAG
