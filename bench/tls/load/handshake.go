package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/daimon-go/daimon/bench/internal/load"
)

// dial makes a connection, and the handshake if there is TLS.
func (c *crowd) dial() (net.Conn, error) {
	raw, err := net.Dial("tcp", c.addr)
	if err != nil || c.config == nil {
		return raw, err
	}
	if err := raw.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	secret := tls.Client(raw, c.config)
	if err := secret.Handshake(); err != nil {
		return nil, err
	}
	return secret, load.Agreed(secret.ConnectionState())
}

// handshake makes a connection, and closes it in order: so the server has finished its part too.
func (c *crowd) handshake() error {
	conn, err := c.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	secret := conn.(*tls.Conn)
	if resumed := secret.ConnectionState().DidResume; resumed != (c.handshakes == "resumed") {
		return fmt.Errorf("a handshake that is to be %s: resumed is %v", c.handshakes, resumed)
	}
	return conclude(secret)
}

func conclude(c *tls.Conn) error {
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if n, err := io.Copy(io.Discard, c); n > 0 || err != nil {
		return errors.Join(fmt.Errorf("%d bytes in place of close_notify", n), err)
	}
	return nil
}

// obtainSession makes a full handshake, for a session that all later ones resume.
func (c *crowd) obtainSession() error {
	cache := &session{}
	c.config.ClientSessionCache = cache
	conn, err := c.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conclude(conn.(*tls.Conn)); err != nil { // the ticket comes after the handshake
		return err
	}
	if cache.state == nil {
		return errors.New("the server has sent no session ticket")
	}
	cache.kept = true
	return nil
}

// session is a ClientSessionCache with one session, which is only read once it is kept.
type session struct {
	state *tls.ClientSessionState
	kept  bool
}

func (s *session) Get(string) (*tls.ClientSessionState, bool) { return s.state, s.state != nil }

func (s *session) Put(_ string, state *tls.ClientSessionState) {
	if !s.kept {
		s.state = state
	}
}
