package service_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

// asNobody takes the rights over files from its thread, which ends with the Group: setfsuid(2).
func asNobody(*act.Scheduler) error {
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 65534, 0, 0) // without root there are no rights to give up
	return nil
}

func TestUnixWithoutPermission(t *testing.T) {
	dir := filepath.Join(servertest.ShortDir(t), "closed")
	require.NoError(t, os.Mkdir(dir, 0o000))
	v := &service.Listener{Address: "unix:" + filepath.Join(dir, "s"), Handler: echo.Echo}
	err := setUp(t, 2, asNobody, v.Setup)
	require.ErrorIs(t, err, unix.EACCES)
	sentence(t, err, v.Address, "permission denied")
}

func TestUnixAbstractName(t *testing.T) {
	path := fmt.Sprintf("@daimon/service/%d", os.Getpid())
	v := &service.Listener{Address: "unix:" + path, Handler: answers("hello")}
	w := begin(t, act.Config{Schedulers: 2}, v.Setup)
	require.Equal(t, path, v.Addr().String())
	hears("hello")(t, servertest.Dial(t, v.Addr()))
	_, err := os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	err = setUp(t, 1, (&service.Listener{Address: v.Address, Handler: echo.Echo}).Setup)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	sentence(t, err, v.Address)
	require.Error(t, w.order(servertest.Cut))
	_, err = net.Dial("unix", path)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
