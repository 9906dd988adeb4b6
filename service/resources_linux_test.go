package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/resource"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

func TestMaxConnsFitsDescriptorsAndMemoryByDefault(t *testing.T) {
	for name, row := range map[string]struct {
		descriptors int
		memory      int64
		limits      listener.Limits
		want        int
	}{
		"nothing is known":               {want: 1 << 20},
		"descriptors":                    {descriptors: 1024, want: 984},
		"few of them":                    {descriptors: 14, want: 1},
		"64 MiB":                         {memory: 64 << 20, want: 256},
		"both":                           {descriptors: 1024, memory: 1 << 40, want: 984},
		"little memory, larger limits":   {memory: 64 << 20, limits: listener.Limits{Read: 1 << 20}, want: 30},
		"two connections for each":       {descriptors: 1024, memory: 1 << 40, limits: listener.Limits{Conns: 2}, want: 492},
		"less memory than one takes":     {memory: 1000, want: 1},
		"more than a server ever serves": {descriptors: 1 << 30, memory: 1 << 50, want: 1 << 20},
	} {
		limits, err := row.limits.Resolved()
		require.NoError(t, err)
		require.Equal(t, row.want, service.PlacesFor(row.descriptors, row.memory, limits), name)
	}
}

// What was broken: with 14 descriptors and two schedulers the server started, and every client waited for ever.
func TestAServerThatCannotAcceptAnybodyDoesNotStart(t *testing.T) {
	said, err := playChild(t, "short of descriptors", loopback)
	require.NoError(t, err, said)
	require.Contains(t, said, "cannot listen on 127.0.0.1:0: no descriptor is left for connections: too many open files; allow more")
}

// Whatever the limit, either the set-up fails, or a descriptor is left for a client.
func init() {
	children["short of descriptors"] = func(address string) error {
		servertest.StartRuntimePoller()
		open, err := os.ReadDir("/dev/fd")
		if err != nil {
			return err
		}
		refused, v := false, &service.Listener{Address: address, Handler: echo.Echo} // one that was refused can be set up again
		for more := range 20 {
			limit := unix.Rlimit{Cur: uint64(len(open) - 1 + more), Max: 1000}
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			var spare error
			err := act.Run(ctx, act.Config{Schedulers: 2, Logger: zap.NewNop()}, v.Setup, func(s *act.Scheduler) error {
				if s.Index() == 1 {
					spare = resource.SpareDescriptor()
					cancel()
				}
				return nil
			})
			cancel()
			switch {
			case err != nil:
				if strings.Contains(err.Error(), "no descriptor is left") {
					fmt.Println(err)
					refused = true
				}
			case spare != nil:
				return fmt.Errorf("it starts with %d more, and has none left", more)
			case refused:
				return nil
			}
		}
		return errors.New("it never starts, or was never refused")
	}
}
