//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The peer of a connection may be a goroutine of package net, which calls package syscall. What one end has set before it
// sends, the other may read when it has received, without a lock: the race detector watches.
func TestBytesOrderWhatBothEndsDo(t *testing.T) {
	one, buf := []byte("1"), make([]byte, 8)
	receive := func(fd int) (int, error) { return sys.Receive(fd, buf) }
	read := func(fd int) (int, error) { return syscall.Read(fd, buf) }
	f, _ := file(t, 1)
	b, noBatch := sys.OpenBatch(1)
	if noBatch == nil {
		defer b.Close()
	}
	batch := func(c Call) (int, error) {
		calls := [1]Call{c}
		b.Do(calls[:])
		return calls[0].N, calls[0].Err
	}
	for name, row := range map[string]struct{ send, receive func(fd int) (int, error) }{
		"send":        {func(fd int) (int, error) { return sys.Send(fd, nil, one) }, read},
		"sendfile":    {func(fd int) (int, error) { return sys.SendFile(fd, f, 0, 1) }, read},
		"receive":     {func(fd int) (int, error) { return syscall.Write(fd, one) }, receive},
		"batch, send": {func(fd int) (int, error) { return batch(Call{FD: fd, Send: true, P: one}) }, read},
		"batch, receive": {func(fd int) (int, error) { return syscall.Write(fd, one) },
			func(fd int) (int, error) { return batch(Call{FD: fd, P: buf}) }},
		"both": {func(fd int) (int, error) { return sys.Send(fd, nil, one) }, receive},
		"packets": {func(fd int) (int, error) { return sys.SendPackets(fd, new(PacketBuffer), []Packet{{Data: one}}) },
			func(fd int) (int, error) {
				in, _, err := sys.ReceivePackets(fd, new(PacketBuffer))
				return len(in), err
			}},
	} {
		if name == "packets" && !sendsFromLocal || name[:2] == "ba" && noBatch != nil {
			continue // only Linux orders the former, and has the latter
		}
		for network, pair := range pairs {
			t.Run(name+", "+network, func(t *testing.T) {
				from, to := pair(t)
				hold(t, from)
				hold(t, to)
				set, sent := 0, make(chan error)
				go func() {
					set++
					_, err := row.send(from) // nothing of t, whose lock would order
					sent <- err
				}()
				polled(t, to, unix.POLLIN)
				_, err := row.receive(to)
				set++
				require.NoError(t, err)
				require.NoError(t, <-sent)
			})
		}
	}
}
