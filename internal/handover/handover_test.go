package handover_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
)

// A state is passed on without sockets, and an Inspector without an address has none.
func TestOnlyServicesThatListenArePassedOn(t *testing.T) {
	all := handover.Listeners([]any{&inspect.Inspector{}, &service.Listener{}, "a state", &inspect.Inspector{Address: "127.0.0.1:0"}})
	require.Len(t, all, 2)
	for _, l := range all {
		sockets, err := l.Sockets()
		require.NoError(t, err)
		require.Nil(t, sockets, "it has not been set up")
	}
}

// What systemd passes on may be of both sorts.
func TestStreamsAndDatagramsAreAdopted(t *testing.T) {
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer streams.Close()
	datagrams, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer datagrams.Close()
	for addr, of := range map[net.Addr]any{streams.Addr(): streams, datagrams.LocalAddr(): datagrams} {
		raw, err := of.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		fd := -1
		require.NoError(t, raw.Control(func(x uintptr) { fd, err = netpoll.System{}.Duplicate(int(x)) }))
		require.NoError(t, err)
		got, err := handover.Adopt(fd)
		require.NoError(t, err)
		require.Equal(t, addr.String(), got.String())
		require.NoError(t, netpoll.System{}.Close(fd))
	}
	_, err = handover.Adopt(-1)
	require.Error(t, err)
}
