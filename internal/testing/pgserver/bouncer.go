//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Bouncer is PgBouncer in transaction mode: a client has a connection to the server only as long as its transaction runs.
type Bouncer struct{ *program }

// Bounce starts PgBouncer before the server, with that many connections to each database.
func (s *Server) Bounce(connections int) (*Bouncer, error) {
	p, err := newProgram()
	if err != nil {
		return nil, err
	}
	b := &Bouncer{p}
	err = b.write("pgbouncer.ini", fmt.Sprintf(`[databases]
* = host=%s port=%d user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
`, s.dir, s.port, b.port, connections))
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Start starts it again after Stop or Kill.
func (b *Bouncer) Start() error {
	return b.start(func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, "pgbouncer", "pgbouncer.ini")
}

// Stop ends it, and all connections through it.
func (b *Bouncer) Stop() error { return b.stop(syscall.SIGTERM) }

// URL returns the URL of a database.
func (b *Bouncer) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", b.port, database)
}
