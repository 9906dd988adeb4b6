package service_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// A program may start and stop servers as often as it likes, under load and in every way: nothing is left
// of them, and the same addresses are free.
func TestLoadedRoundsLeaveNothing(t *testing.T) {
	// An address of the process's own: between two rounds no other program takes the port.
	own := fmt.Sprintf("127.77.%d.%d:0", byte(os.Getpid()>>8), byte(os.Getpid()))
	tcp := &service.TCP{Address: own, Handler: echo}
	local := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: echo}
	round := func(i int) {
		idle, err := demon.ParseStrategy(demon.Strategies[i%4])
		require.NoError(t, err)
		loadedRound(t, act.Config{Schedulers: 2, Idle: idle, Logger: zap.NewNop()}, tcp, local)
		tcp.Address = tcp.Addr().String()
	}
	goroutines := runtime.NumGoroutine()
	for i := range 4 { // the runtime makes the threads it needs
		round(i)
	}
	tasks, before := threads(t), servertest.Descriptors(t)
	for i := range tier.Choose(20, 20, 50) {
		round(i)
	}
	require.Equal(t, before, servertest.Descriptors(t))
	settled(t, "goroutines", goroutines, runtime.NumGoroutine)
	// The runtime keeps the threads it has made for system calls, some more or fewer; two a round would be forty.
	settled(t, "threads", tasks+10, func() int { return threads(t) })
}

// settled waits for there to be at most so many. It does so on this goroutine: require.Eventually has one
// of its own, which would be counted.
func settled(t *testing.T, what string, most int, count func() int) {
	t.Helper()
	for end := time.Now().Add(servertest.Timeout); count() > most && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, count(), most, what)
}

// loadedRound runs both services, has clients talk to them without a pause, and ends in the middle of it.
func loadedRound(t *testing.T, cfg act.Config, services ...socketed) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg.Shutdown = shutdown.Policy{Time: time.Millisecond, Drop: true}
	var clients sync.WaitGroup
	var answers atomic.Int64
	ready := func(s *act.Scheduler) error {
		if s.Index() == 1 {
			for _, v := range services {
				for range 4 {
					clients.Go(func() { talk(v.Addr(), &answers) })
				}
			}
			clients.Go(func() {
				defer cancel()
				for end := time.Now().Add(servertest.Timeout); answers.Load() < 50 && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
			})
		}
		return nil
	}
	setup := []func(*act.Scheduler) error{}
	for _, v := range services {
		setup = append(setup, v.Setup)
	}
	err := act.Run(ctx, cfg, append(setup, ready)...)
	clients.Wait()
	var left *shutdown.Cut
	require.ErrorAs(t, err, &left)
	require.GreaterOrEqual(t, answers.Load(), int64(50), "they were under load")
	for _, v := range services {
		require.Zero(t, v.Open())
	}
}

// talk goes on until the server has gone.
func talk(a net.Addr, answers *atomic.Int64) {
	c, err := net.DialTimeout(a.Network(), a.String(), servertest.Timeout)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(servertest.Timeout))
	word := make([]byte, 64)
	for {
		if _, err := c.Write(word); err != nil {
			return
		}
		if _, err := io.ReadFull(c, word); err != nil {
			return
		}
		answers.Add(1)
	}
}

func threads(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	return len(all)
}
