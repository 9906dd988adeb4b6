package secure_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tlstest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
)

// What the kernel does not take comes before what is sent later.
func TestALentConnectionSendsAllInOrder(t *testing.T) {
	for name, next := range map[string]func(x *stepped, o monitor.Output) error{
		"Send":   func(_ *stepped, o monitor.Output) error { _, err := o.Send(nil, nil); return err },
		"Return": func(_ *stepped, o monitor.Output) error { o.Return(); return nil },
		"Close":  func(x *stepped, _ monitor.Output) error { return x.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			x := step(t, listener.Limits{})
			lender, _ := listener.As[monitor.OutputLender](x.Conn)
			o, text := lender.LendOutput(), noise(200_000)
			require.Nil(t, lender.LendOutput(), "it is lent")
			x.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
			n, err := o.Send([]byte("head"), text)
			require.Equal(t, monitor.ErrWouldBlock, err)
			n -= len("head")
			more, err := o.Send(nil, text[n:])
			require.Equal(t, monitor.ErrWouldBlock, err)
			require.Zero(t, more, "what is held goes first")
			require.True(t, o.Full())
			require.GreaterOrEqual(t, budget.Of(x.S).Total(), n, "it counts")
			_, err = o.SendFile(nil, 0, 1)
			require.Equal(t, errors.ErrUnsupported, err)
			x.OS.Fail = nil
			require.NoError(t, next(x, o))
			servertest.Expect(t, x.peer, "head"+string(text[:n]))
			o.Return()
			x.Turn(func(*act.Task) {})
			require.Less(t, budget.Of(x.S).Total(), n)
			_, err = o.Send(nil, text)
			require.Equal(t, net.ErrClosed, err)
			x.Abort()
		})
	}
}

// A goroutine sends while the scheduler reads. Answers of crypto/tls wait for the next Send. The connection fails when a peer asks
// for too many.
func TestAnswersOfALentConnectionAreBounded(t *testing.T) {
	keys := &bytes.Buffer{}
	x := step(t, listener.Limits{}, keys)
	seal, err := tlstest.NewSealer(x.peer.ConnectionState(), keys.String())
	require.NoError(t, err)
	lender, _ := listener.As[monitor.OutputLender](x.Conn)
	o := lender.LendOutput()
	for rounds := 0; err == nil; rounds++ {
		require.Less(t, rounds, 300)
		updates := 15 // more in a row are an error
		if rounds < 10 {
			updates = 1
			go func() { _, _ = o.Send(nil, []byte("hello")) }()
		} else if rounds == 10 {
			servertest.Expect(t, x.peer, strings.Repeat("hello", 10))
		}
		asked := seal.Record(tlstest.Data, []byte("x"), 0)
		for range updates {
			asked = append(asked, seal.KeyUpdate(true)...)
		}
		servertest.Send(t, x.peer.NetConn(), string(asked))
		var in []byte
		in, err = x.read()
		x.Turn(func(*act.Task) { x.Discard(len(in)) })
	}
	var fault *listener.PeerError
	require.ErrorAs(t, err, &fault)
	_, err = o.Send(nil, []byte("x"))
	require.Error(t, err)
	x.Abort()
}

// What Conn.Room says can be written in one call, even if TLS makes more of it.
func TestRoomHoldsForOneWrite(t *testing.T) {
	server, client := identities(t)
	room, written := make(chan int, 1), make(chan int, 1)
	s := serve(t, &service.Listener{
		Limits:  listener.Limits{High: 1 << 20, SendBuffer: 4 << 10},
		Filters: []listener.Filter{secure.Server(server, nil)},
		Handler: func(c *listener.Conn) act.Action {
			return act.Func(func(*act.Task) act.Directive {
				for c.Queued() < 64<<10 {
					if _, err := c.Write(make([]byte, 64<<10)); err != nil {
						break
					}
				}
				n := c.Room()
				room <- n
				n, _ = c.Write(make([]byte, n))
				written <- n
				c.Abort()
				return act.Done
			})
		}})
	s.dial(client)
	n := servertest.Receive(t, room)
	require.Greater(t, n, 128<<10, "several parts")
	require.Equal(t, n, servertest.Receive(t, written))
	s.drain()
}

// A panic in a function of the config is a mistake of the program: it is reported, and ends this connection alone.
func TestAPanicInAFunctionOfTheConfigIsReported(t *testing.T) {
	for _, x := range []act.Executor{nil, simulated{}} {
		server, client := identities(t)
		cert := server.Certificates[0]
		server = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == "panic" {
				panic("no certificate at all")
			}
			return &cert, nil
		}}
		s := serveWith(t, act.Config{Schedulers: 1, Executor: x},
			&service.Listener{Handler: echo.Echo, Filters: []listener.Filter{secure.Server(server, nil)}})
		bad := client.Clone()
		bad.ServerName = "panic"
		require.Error(t, s.handshake(bad))
		good := s.dial(client)
		servertest.Echo(t, good, "x")
		halves(t, good)
		s.drain()
		failed := s.Logs.FilterMessage("a task failed").All()
		require.Len(t, failed, 1)
		require.Contains(t, failed[0].ContextMap()["error"], "no certificate at all")
	}
}

// A function of the config that waits learns that nobody wants its result any more.
func TestTheContextOfAHandshakeEndsWithIt(t *testing.T) {
	server, client := identities(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		close(begun)
		<-hello.Context().Done()
		close(ended)
		return nil, errors.New("too late")
	}
	var clock servertest.Clock
	v := overTLS(server)
	v.Address, v.FilterTimeout = "127.0.0.1:0", time.Minute
	s := &serving{servertest.Start(t, act.Config{Schedulers: 1, Clock: &clock}, v.Setup), v}
	c := s.stalls(1, 100, client)[0]
	servertest.Receive(t, begun)
	clock.Pass(time.Minute)
	s.Running.Group.Schedulers()[0].Post(func(*act.Scheduler) {}) // its sleep ends
	servertest.Receive(t, ended)
	_ = c.Close()
	s.drain()
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	require.PanicsWithValue(t, "secure: Server without a certificate", func() { secure.Server(&tls.Config{}, nil) })
	require.PanicsWithValue(t, "secure: Client without a ServerName", func() { secure.Client(&tls.Config{}, nil) })
	require.PanicsWithValue(t, "secure: Client with Renegotiation, which would wait in the middle of a Read", func() {
		secure.Client(&tls.Config{ServerName: "localhost", Renegotiation: tls.RenegotiateOnceAsClient}, nil)
	})
	require.EqualError(t, (&secure.Tickets{}).Setup(nil), "secure: Tickets without a Config")
}
