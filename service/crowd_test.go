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
