//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll_test

import (
	"fmt"
	"net/netip"

	"github.com/daimon-go/daimon/internal/netpoll"
	"golang.org/x/sys/unix"
)

// One thread watches a listener and what it accepts, and answers in capitals.
func Example() {
	var sys netpoll.System
	poller, err := sys.OpenPoller()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer poller.Close()
	listener, err := sys.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), netpoll.ListenOptions{First: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sys.Close(listener)
	_ = poller.Add(listener, 1, netpoll.Listener)

	client, _, err := sys.DialTCP(netip.MustParseAddrPort(sys.LocalAddr(listener).String()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sys.Close(client)
	_ = poller.Add(client, 2, netpoll.Stream)

	events, buf := make([]netpoll.Event, 16), make([]byte, 64)
	said := false
	for {
		n, err := poller.Wait(events, -1)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range events[:n] {
			switch {
			case e.Tag == 1:
				fd, err := sys.Accept(listener)
				if err == unix.EAGAIN {
					continue
				}
				defer sys.Close(fd)
				_, _ = sys.Send(fd, []byte("HELLO, "), []byte("WHO IS THERE?"))
			case !said && e.Ready&netpoll.Out != 0:
				said = true
				fmt.Println("connected:", sys.SocketError(client))
				fallthrough
			case e.Ready&netpoll.In != 0:
				if n, err := sys.Receive(client, buf); err == nil {
					fmt.Printf("%s\n", buf[:n])
					return
				}
			}
		}
	}
	// Output:
	// connected: <nil>
	// HELLO, WHO IS THERE?
}
