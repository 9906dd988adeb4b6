package secure_test

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tlstest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
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
