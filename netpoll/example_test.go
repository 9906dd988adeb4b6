//go:build unix

package netpoll_test

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/daimon-go/daimon/netpoll"
)

// A server that receives one message. The tag of each descriptor is its number here; a server with many connections
// needs tags that are not used again.
func ExamplePoller() {
	var system netpoll.System
	poller, err := system.OpenPoller()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = poller.Close() }()
	door, _ := system.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), 0)
	defer func() { _ = system.Close(door) }()
	_ = poller.Add(door, uint64(door), netpoll.In)
	client, _, _ := system.DialTCP(netip.MustParseAddrPort(system.LocalAddr(door).String()))
	defer func() { _ = system.Close(client) }()
	_, _ = poller.Wait(make([]netpoll.Event, 1), -1) // a connection waits
	conn, _ := system.Accept(door)
	defer func() { _ = system.Close(conn) }()
	_ = poller.Add(conn, uint64(conn), netpoll.In|netpoll.Out)

	_, _ = system.Send(client, []byte("hel"), []byte("lo"))
	buffer := make([]byte, 100)
	for {
		n, err := system.Receive(conn, buffer)
		if err == nil {
			fmt.Printf("%s\n", buffer[:n])
			return
		}
		if err == syscall.EAGAIN { // until then nothing is reported anew
			_, _ = poller.Wait(make([]netpoll.Event, 10), -1)
		}
	}
	// Output: hello
}
