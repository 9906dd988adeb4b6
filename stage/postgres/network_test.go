package postgres_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// network is a proxy before the server, whose connections can become silent: nothing gets through, and nobody learns of it.
type network struct {
	listener net.Listener
	all      sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	mutes chan struct{} // closed to silence the connections that there are
}

func newNetwork(t testing.TB) *network {
	t.Helper()
	cfg, err := pgx.ParseConfig(server(t).Socket(database))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &network{listener: l, mutes: make(chan struct{})}
	n.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
			server, err := net.Dial(network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			n.mu.Lock()
			n.conns = append(n.conns, client, server)
			muted := n.mutes
			n.mu.Unlock()
			n.all.Go(func() { pass(client, server, muted) })
			n.all.Go(func() { pass(server, client, muted) })
		}
	})
	return n
}

// pass sends on what it reads, until one side is closed, which closes the other, or muted is closed.
func pass(from, to net.Conn, muted <-chan struct{}) {
	bytes := make([]byte, 1<<16)
	for {
		n, err := from.Read(bytes)
		select {
		case <-muted:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if n > 0 {
			_, err = to.Write(bytes[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func (n *network) port() int { return n.listener.Addr().(*net.TCPAddr).Port }

// mute silences all connections for good, but not new ones: as when the server moves to another machine.
func (n *network) mute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.mutes)
	n.mutes = make(chan struct{})
}

// close ends all connections, and returns when nothing of the proxy runs any more.
func (n *network) close() {
	_ = n.listener.Close()
	n.mu.Lock()
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.all.Wait()
}
