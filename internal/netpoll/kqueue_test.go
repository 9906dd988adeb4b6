//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

// exclusive: a shared listener wakes every poller.
const exclusive = false
