//go:build darwin || freebsd || netbsd || openbsd

package netpoll

// marked is what comes with the mark of out-of-band data.
const marked = Partial
