package e2e

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
)

// A client is one connection to the server, TCP or Unix. All of its calls end with an error when patience is over.
type client interface {
	net.Conn
	CloseWrite() error
}

func (s *server) connect() (client, error) {
	c, err := net.DialTimeout(s.network, s.address, patience)
	if err != nil {
		return nil, err
	}
	if s.tls {
		c = secret{tls.Client(c, &tls.Config{InsecureSkipVerify: true})}
	}
	return c.(client), c.SetDeadline(time.Now().Add(patience))
}

// A secret is a connection over TLS. The first call that needs the handshake makes it.
type secret struct{ *tls.Conn }

func (s secret) CloseWrite() error { return errors.Join(s.Handshake(), s.Conn.CloseWrite()) }

// under returns the connection that carries c.
func under(c client) net.Conn {
	if s, ok := c.(secret); ok {
		return s.NetConn()
	}
	return c
}

// dial connects for the length of the test.
func (s *server) dial(t *testing.T) client {
	t.Helper()
	c, err := s.connect()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// reset closes a TCP connection so that the server gets a RST: SO_LINGER in socket(7).
func reset(c client) {
	if tcp, ok := under(c).(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = under(c).Close()
}

// ping says something and waits for the echo.
func ping(c client, word string) error {
	if _, err := io.WriteString(c, word); err != nil {
		return err
	}
	answer := make([]byte, len(word))
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if string(answer) != word {
		return fmt.Errorf("said %q, heard %q", word, answer)
	}
	return nil
}

// whole sends data in pieces, half-closes, and wants exactly data and EOF back.
func whole(c client, data []byte, piece int) error {
	sent := make(chan error, 1)
	go func() { sent <- send(c, data, piece) }()
	heard, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(data, heard) {
		err = errGarbled
	}
	return errors.Join(<-sent, err)
}

func send(c client, data []byte, piece int) error {
	for part := range slices.Chunk(data, piece) {
		if _, err := c.Write(part); err != nil {
			return err
		}
	}
	return c.CloseWrite()
}

// together runs do for each of n at a time and returns what failed.
func together(n int, do func(i int) error) error {
	failures := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { failures[i] = do(i) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// A talker sends without end, pieces of up to 16 KiB with a pause between them, and checks every byte that comes back.
type talker struct {
	client
	number uint64
	pause  time.Duration
	sent   int64
	heard  atomic.Int64
	quiet  atomic.Bool // half-close after the present piece
	done   chan error
}

// talk starts a talker. Its done channel gets nil if all that came back was right, up to a clean EOF.
func talk(c client, number uint64, pause time.Duration) *talker {
	k := &talker{client: c, number: number, pause: pause, done: make(chan error, 1)}
	sent := make(chan error, 1)
	go func() { sent <- k.say() }()
	go func() {
		err := k.hear()
		k.done <- errors.Join(<-sent, err)
	}()
	return k
}

func (k *talker) say() error {
	random, sizes := stream(k.number), rand.New(rand.NewPCG(k.number, 0))
	for !k.quiet.Load() {
		piece := make([]byte, 1+sizes.IntN(16<<10))
		_, _ = random.Read(piece)
		n, err := k.Write(piece)
		k.sent += int64(n)
		if err != nil {
			return err
		}
		time.Sleep(k.pause)
	}
	return k.CloseWrite()
}

var errGarbled = errors.New("what came back is not what was sent")

func (k *talker) hear() error {
	random, in := stream(k.number), make([]byte, 16<<10)
	want := make([]byte, len(in))
	for {
		n, err := k.Read(in)
		_, _ = random.Read(want[:n])
		if !bytes.Equal(want[:n], in[:n]) {
			return errGarbled
		}
		k.heard.Add(int64(n))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// finish ends a talk and wants all of it back.
func (k *talker) finish() error {
	k.quiet.Store(true)
	if err := <-k.done; err != nil {
		return fmt.Errorf("talker %d, %d sent, %d heard: %w", k.number, k.sent, k.heard.Load(), err)
	}
	if heard := k.heard.Load(); heard != k.sent {
		return fmt.Errorf("talker %d sent %d bytes and heard %d", k.number, k.sent, heard)
	}
	return k.Close()
}

// talkers starts n talks and returns when each has heard something. However many they are, together they
// send up to 10,000 pieces a second: clients that took all of the machine would measure themselves.
func (s *server) talkers(t *testing.T, n int) []*talker {
	t.Helper()
	all := make([]*talker, n)
	for i := range all {
		all[i] = talk(s.dial(t), uint64(i), time.Duration(n)*100*time.Microsecond)
	}
	exectest.Eventually(t, patience, "an answer to each talker", func() bool {
		return !slices.ContainsFunc(all, func(k *talker) bool { return k.heard.Load() == 0 })
	})
	return all
}

func finish(all []*talker) error {
	return together(len(all), func(i int) error { return all[i].finish() })
}
