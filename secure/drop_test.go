package secure_test

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// A server that is cut off leaves no goroutine and no descriptor, whatever state its handshakes are in.
func TestADropInEachStateOfAHandshake(t *testing.T) {
	base, client := identities(t)
	for _, state := range []string{"nothing has come", "a part of the first message", "waiting for the client", "computing",
		"waiting for a slot", "over", "refused"} {
		for _, h := range []*secure.Handshakes{{Slots: 1}, {OnReactor: true}} {
			if h.OnReactor && (state == "computing" || state == "waiting for a slot") {
				continue // it would hold up the scheduler
			}
			name := map[bool]string{true: " on the reactor", false: " on goroutines"}[h.OnReactor]
			t.Run(state+name, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				computing := make(chan struct{}, 100)
				server := &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
					switch state {
					case "computing":
						computing <- struct{}{}
						<-hello.Context().Done()
					case "waiting for a slot":
						computing <- struct{}{}
						time.Sleep(2 * time.Millisecond) // less than a step may have its slot
					case "refused":
						return nil, errors.New("no certificate for you")
					}
					return &base.Certificates[0], nil
				}}
				s := serve(t, &service.TCP{Handler: echo, FilterTimeout: time.Minute,
					Filters: []listener.Filter{secure.Server(server, h)}})
				switch state {
				case "nothing has come":
					s.stalls(10, 0, client)
				case "a part of the first message":
					s.stalls(10, 50, client)
				case "over":
					c := s.dial(client)
					servertest.Echo(t, c, "x")
				default:
					for _, c := range s.stalls(10, 100, client) {
						if state == "waiting for the client" || state == "refused" {
							_, err := c.Read(make([]byte, 1)) // the server's answer
							require.NoError(t, err)
						}
					}
				}
				switch state {
				case "computing":
					for range 10 {
						servertest.Receive(t, computing)
					}
				case "waiting for a slot":
					servertest.Receive(t, computing)
				}
				require.Eventually(t, func() bool { return s.Open() > 0 }, servertest.Timeout, time.Millisecond)
				s.Group.Shutdown(servertest.Cut)
				if err := s.End(); state != "refused" { // that one may have ended
					var cut *shutdown.Cut
					require.ErrorAs(t, err, &cut)
				}
				_ = s.Group.Close()
				goleak.VerifyNone(t, before)
			})
		}
	}
}

// quitter is a client's connection that is given up after so many bytes of both directions.
type quitter struct {
	net.Conn
	left  atomic.Int64
	reset bool
}

func quits(c net.Conn, after int, reset bool) *quitter {
	q := &quitter{Conn: c, reset: reset}
	q.left.Store(int64(after))
	return q
}

func (q *quitter) spend(n int, err error) (int, error) {
	if q.left.Add(-int64(n)) <= 0 && err == nil {
		if q.reset {
			_ = q.Conn.(*net.TCPConn).SetLinger(0)
		}
		_ = q.Conn.Close()
		err = net.ErrClosed
	}
	return n, err
}

func (q *quitter) most(p []byte) []byte { return p[:min(int64(len(p)), max(0, q.left.Load()))] }

func (q *quitter) Read(p []byte) (int, error)  { return q.spend(q.Conn.Read(q.most(p))) }
func (q *quitter) Write(p []byte) (int, error) { return q.spend(q.Conn.Write(q.most(p))) }

// Thousands of handshakes, half of which are aborted at any byte, by an end or a reset, leave nothing behind.
func TestHandshakesThatAreAborted(t *testing.T) {
	server, client := identities(t)
	before := goleak.IgnoreCurrent()
	s := serveOn(t, 2, &service.TCP{Handler: echo, Filters: []listener.Filter{secure.Server(server, nil)}})
	n, random := tier.Choose(400, 400, 10_000), rand.New(rand.NewPCG(17, 0))
	some := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range n {
		under, cfg := servertest.Dial(t, s.Addr()), version(client, versions[random.IntN(2)])
		left, reset := 1+random.IntN(4000), random.IntN(2) == 0
		some <- struct{}{}
		all.Go(func() {
			defer func() { <-some }()
			if i%2 == 0 {
				echoes(t, quits(under, left, reset), cfg)
				return
			}
			c := tls.Client(under, cfg)
			defer func() { _ = c.Close() }()
			got := make([]byte, 5)
			if _, err := c.Write([]byte("hello")); err != nil {
				t.Error(err)
			}
			if _, err := c.Read(got); err != nil || string(got) != "hello" {
				t.Error(err, got)
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool { return s.Open() == 0 }, servertest.Timeout, time.Millisecond)
	s.drain()
	s.withoutReports()
	require.NoError(t, s.Group.Close())
	goleak.VerifyNone(t, before)
}
