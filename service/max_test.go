package service_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// greeting says hello and then stays until the peer closes.
func greeting(c *listener.Conn) act.Action { return act.Seq(answers("hello")(c), echo(c)) }

// The bound is for all schedulers together. A client beyond it waits in the backlog, and is accepted when
// another leaves, on whichever scheduler that was.
func TestMaxConnsIsTheTotalOfAllSchedulers(t *testing.T) {
	const clients, most = 30, 3
	tcp := &service.TCP{Address: loopback, Handler: greeting, MaxConns: most}
	unix := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: greeting, MaxConns: most}
	for _, kind := range []kind{{"tcp", tcp}, {"unix", unix}} {
		t.Run(kind.name, func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				w := begin(t, cfg, kind.Setup)
				served := make(chan net.Conn, clients)
				for range clients {
					c := servertest.Dial(t, kind.Addr())
					go func() {
						if _, err := io.ReadFull(c, make([]byte, 5)); err == nil {
							served <- c
						}
					}()
				}
				for range clients {
					select {
					case c := <-served:
						require.LessOrEqual(t, kind.Open(), most)
						require.Less(t, len(served), most)
						require.NoError(t, c.Close())
					case <-time.After(servertest.Timeout):
						require.FailNow(t, "the next one does not come in")
					}
				}
				require.NoError(t, w.order(servertest.Drain))
			})
		})
	}
}

// A connection has its place until its descriptor is closed, also when its task is long gone.
func TestLingeringConnectionsCountAgainstMaxConns(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		v := &service.TCP{
			Address: loopback, Handler: answers("hello"), MaxConns: 1,
			Limits: listener.Limits{Linger: servertest.Timeout},
		}
		begin(t, cfg, v.Setup)
		first := servertest.Dial(t, v.Addr())
		hears("hello")(t, first) // and does not close
		require.Equal(t, 1, v.Open())
		second := servertest.Dial(t, v.Addr())
		require.NoError(t, second.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := second.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it waits")
		require.NoError(t, second.SetReadDeadline(time.Now().Add(servertest.Timeout)))
		require.NoError(t, first.Close())
		hears("hello")(t, second)
	})
}

// At the bound an order does not wait for clients that were not accepted.
func TestAnOrderAtMaxConnsLeavesTheBacklog(t *testing.T) {
	v := &service.TCP{Address: loopback, Handler: greeting, MaxConns: 1}
	w := begin(t, act.Config{Schedulers: 2}, v.Setup)
	in := servertest.Dial(t, v.Addr())
	servertest.Expect(t, in, "hello")
	out := servertest.Dial(t, v.Addr())
	w.Group.Shutdown(servertest.Drain)
	hearReset(t, out)
	require.NoError(t, in.Close())
	require.NoError(t, w.End())
}

// Clients that come and go in every way, at random: never are there more than MaxConns, all are served
// (a lost wake-up of a waiting acceptor would leave one behind), and in the end none is left.
func TestMaxConnsUnderChurn(t *testing.T) {
	clients, each := 12, tier.Choose(5, 5, 25)
	for _, most := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("at most %d", most), func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				var here, above, closed atomic.Int64
				v := &service.TCP{Address: loopback, MaxConns: most, Handler: func(c *listener.Conn) act.Action {
					if here.Add(1) > int64(most) {
						above.Add(1)
					}
					return &leaving{greeting(c), &here, &closed}
				}}
				w := begin(t, cfg, v.Setup)
				failures := make(chan error, clients)
				for seed := range clients {
					go func() { failures <- churn(v.Addr(), uint64(seed), each) }()
				}
				for range clients {
					require.NoError(t, <-failures)
				}
				eventually(t, "all have left", func() bool { return v.Open() == 0 })
				require.Zero(t, above.Load())
				require.NoError(t, w.order(servertest.Drain))
				require.Empty(t, w.failures())
				require.EqualValues(t, clients*each, closed.Load())
			})
		})
	}
}

// leaving counts a task out in its last turn: then it still has its place.
type leaving struct {
	act.Action
	here, closed *atomic.Int64
}

func (x *leaving) Act(t *act.Task) act.Directive {
	d := x.Action.Act(t)
	if d.Finished() {
		x.here.Add(-1)
	}
	return d
}

func (x *leaving) Close() error {
	x.closed.Add(1)
	return nil
}

// churn connects again and again, is greeted, and goes in one of the ways there are.
func churn(a net.Addr, seed uint64, times int) error {
	random := rand.New(rand.NewPCG(seed, 1))
	for range times {
		c, err := net.Dial(a.Network(), a.String())
		if err != nil {
			return err
		}
		tcp := c.(*net.TCPConn)
		_ = c.SetDeadline(time.Now().Add(servertest.Timeout))
		if _, err = io.ReadFull(c, make([]byte, 5)); err != nil {
			return err
		}
		switch random.IntN(4) {
		case 0:
			_ = tcp.SetLinger(0)
		case 1:
			_ = tcp.CloseWrite()
			if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
				return fmt.Errorf("after the half-close: %q, %w", rest, err)
			}
		case 2:
			_, _ = c.Write([]byte("unread answer"))
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}
