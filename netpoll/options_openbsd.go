package netpoll

// noSignal is MSG_NOSIGNAL of <sys/socket.h>, which x/sys/unix leaves out.
const noSignal = 0x400

const (
	spreadsTCP        = false
	inheritsKeepAlive = true
)

// keepAliveTimes: they are the system's alone (sysctl net.inet.tcp.keepidle).
var keepAliveTimes []int

// dontFragment: there is no such option for IPv4.
const dontFragment = 0
