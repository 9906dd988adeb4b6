package netpoll

import "golang.org/x/sys/unix"

// noSignal: Darwin has no such flag. The runtime's handler ignores a SIGPIPE that is not for standard output or error,
// so a program sees one only if it has asked for it with os/signal.
const noSignal = 0

const (
	spreadsTCP        = false
	inheritsKeepAlive = false
)

// keepAliveTimes: TCP_KEEPALIVE is Darwin's name of TCP_KEEPIDLE.
var keepAliveTimes = []int{unix.TCP_KEEPALIVE, unix.TCP_KEEPINTVL}

// dontFragment is the option of IPv4 that sets the bit.
const dontFragment = unix.IP_DONTFRAG
