package monitor_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// Each row opens a descriptor and returns what makes it ready. A directory and a process are in examples/watch.
func TestDescriptorsOfAllKindsAreWatched(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (fd int, happen func() error, err error){
		"eventfd": func(*testing.T) (fd int, happen func() error, err error) {
			fd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
			return fd, func() error { _, err := unix.Write(fd, []byte{7: 1}); return err }, err
		},
		"timerfd": func(*testing.T) (fd int, happen func() error, err error) {
			fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
			at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(time.Millisecond))}
			return fd, func() error { return unix.TimerfdSettime(fd, 0, &at, nil) }, err
		},
		"pty": func(t *testing.T) (fd int, happen func() error, err error) {
			fd, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			require.NoError(t, err)
			require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
			n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
			require.NoError(t, err)
			tty, err := unix.Open(fmt.Sprint("/dev/pts/", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			t.Cleanup(func() { _ = unix.Close(tty) })
			return fd, func() error { _, err := unix.Write(tty, []byte("x")); return err }, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pipe{Stepped: servertest.New(t, act.Config{})}
			p.Engine()
			fd, happen, err := open(t)
			require.NoError(t, err)
			defer func() { require.NoError(t, unix.Close(fd)) }()
			w := p.watch(fd, netpoll.In)
			o := p.await(listener.Ready{Of: w})
			require.False(t, o.reported())
			require.NoError(t, happen())
			p.Until("it is reported", o.reported)
			require.NoError(t, w.Close())
		})
	}
}

func TestWhatIsAlwaysReadyIsNotWatched(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.Engine()
	for _, name := range []string{"watch.go", ".", "/dev/null", "/proc/self/status"} {
		fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		require.NoError(t, err)
		_, err = monitor.Watch(l.S, fd, netpoll.In)
		require.NoError(t, syscall.Close(fd))
		require.ErrorIs(t, err, syscall.EPERM, name)
		require.ErrorContains(t, err, " cannot be watched, since it is always ready, as regular files are: ", name)
	}
}
