package service_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/service"
)

// A connection is no goroutine: a server has those of its schedulers and a dozen more, however many clients there are.
func TestConnectionsBringNoGoroutines(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		const clients = 300
		v := &service.TCP{Address: loopback, Handler: echo}
		w := begin(t, cfg, v.Setup)
		for range clients {
			c := servertest.Dial(t, v.Addr())
			servertest.Echo(t, c, "!")
		}
		eventually(t, "all are open", func() bool { return v.Open() == clients })
		require.LessOrEqual(t, runtime.NumGoroutine(), cfg.Schedulers+12)
		require.Error(t, w.order(servertest.Cut))
		require.Zero(t, v.Open())
	})
}

const tenThousand = 10_000

// Ten thousand connections on one server: all are served, at the same time, and all get their answers again. The clients
// are another process, which has descriptors of its own.
func TestTenThousandConnectionsAtATime(t *testing.T) {
	tier.Need(t, tier.Full, "it takes 10,000 descriptors in each of two processes, and some seconds")
	v := &service.TCP{Address: loopback, Handler: echo, MaxConns: tenThousand}
	w := begin(t, act.Config{Schedulers: 2}, v.Setup)
	ended := make(chan error, 1)
	go func() {
		said, err := playChild(t, "ten thousand clients", v.Addr().String())
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		ended <- err
	}()
	most := 0
	for open := true; open; {
		select {
		case err := <-ended:
			require.NoError(t, err)
			open = false
		case <-time.After(time.Millisecond):
			most = max(most, v.Open())
		}
	}
	require.Equal(t, tenThousand, most)
	eventually(t, "all have left", func() bool { return v.Open() == 0 })
	require.NoError(t, w.order(servertest.Drain))
}

func init() {
	children["ten thousand clients"] = func(address string) error {
		all := make([]net.Conn, tenThousand)
		for i := range all {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				return err
			}
			all[i] = c
		}
		for range 2 {
			for _, c := range all {
				if _, err := c.Write([]byte("hello")); err != nil {
					return err
				}
			}
			for i, c := range all {
				in := make([]byte, 5)
				if _, err := io.ReadFull(c, in); err != nil || string(in) != "hello" {
					return fmt.Errorf("connection %d: %q, %w", i, in, err)
				}
			}
		}
		return nil
	}
}
