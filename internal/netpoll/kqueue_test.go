//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

// exclusive: a shared listener wakes every poller.
const exclusive = false

// marked is what comes with the mark of out-of-band data.
const marked = Partial
