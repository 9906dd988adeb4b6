//go:build darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	mapsIPv4 = runtime.GOOS != "openbsd" // which has no sockets for both versions, and refuses the option
	// A full backlog is ECONNREFUSED, as if nothing listened, so after a refusal it tries again.
	staleProbes = 10
	// atOnce bounds a call: Darwin refuses more than INT_MAX bytes with EINVAL (bsd/kern/sys_generic.c).
	atOnce = 1 << 30
)

// abstract returns false: only Linux has abstract names.
func abstract(string) bool { return false }

func receive(fd int, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // the kernel would return 0, as at the end
	}
	p = p[:min(len(p), atOnce)]
	for {
		switch n, err := syscall.Read(fd, p); { // not that of x/sys/unix: see release
		case err == nil && n == 0:
			return 0, io.EOF
		case err != unix.EINTR:
			return max(0, n), err
		}
	}
}

func send(fd int, head, p []byte) (int, error) {
	if len(head) == 0 && len(p) == 0 {
		return 0, nil
	}
	head = head[:min(len(head), atOnce)]
	p = p[:min(len(p), atOnce-len(head))]
	for {
		if n, err := sendmsg(fd, head, p); err != unix.EINTR {
			return max(0, n), err
		}
	}
}

// sendmsg is called for one part too, and then allocates nothing: write takes no MSG_NOSIGNAL, and Sendto of x/sys/unix
// does not return how much was sent.
func sendmsg(fd int, head, p []byte) (int, error) {
	switch {
	case len(head) == 0:
		return unix.SendmsgN(fd, p, nil, nil, noSignal)
	case len(p) == 0:
		return unix.SendmsgN(fd, head, nil, nil, noSignal)
	}
	return unix.SendmsgBuffers(fd, [][]byte{head, p}, nil, nil, noSignal)
}

func closeWrite(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) }

func closeFD(fd int) error {
	if err := unix.Close(fd); err != unix.EINTR {
		return err
	}
	return nil // closed: see System.Close
}

func localAddr(fd int) net.Addr { return netAddr(unix.Getsockname(fd)) }
func peerAddr(fd int) net.Addr  { return netAddr(unix.Getpeername(fd)) }

func peerAddrPort(fd int) netip.AddrPort {
	if a, ok := peerAddr(fd).(*net.TCPAddr); ok {
		a := a.AddrPort()
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	return netip.AddrPort{}
}
