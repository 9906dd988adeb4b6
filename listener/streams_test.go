package listener_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/filtertest"
	"github.com/daimon-go/daimon/internal/testing/streamtest"
	"github.com/daimon-go/daimon/listener"
)

// TestStreams plays the suite of Streams over real sockets. Package secure plays it over TLS, and package sim in its worlds.
func TestStreams(t *testing.T) {
	for name, way := range map[string]streamtest.Way{
		"tcp":      streamtest.Sockets("tcp", nil, nil),
		"unix":     streamtest.Sockets("unix", nil, nil),
		"filtered": streamtest.Sockets("tcp", []listener.Filter{filtertest.Mask(7)}, mask),
	} {
		t.Run(name, func(t *testing.T) { streamtest.Run(t, way) })
	}
}

// masked is the client's end of a connection with the filter Mask. Its own key is 1.
type masked struct {
	net.Conn
	key byte // of the server
}

func mask(c net.Conn) net.Conn {
	key := []byte{1}
	if _, err := c.Write(key); err != nil {
		panic(err)
	}
	if _, err := io.ReadFull(c, key); err != nil {
		panic(err)
	}
	return &masked{c, key[0]}
}

func (c *masked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for i := range p[:n] {
		p[i] -= c.key
	}
	return n, err
}

func (c *masked) Write(p []byte) (int, error) {
	hidden := bytes.Clone(p)
	for i := range hidden {
		hidden[i]++
	}
	return c.Conn.Write(hidden)
}

func (c *masked) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
