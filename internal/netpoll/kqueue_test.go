//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

// exclusive: a shared listener wakes everybody.
const exclusive = false
