package service_test

import (
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

// servedByAll requires that while one scheduler is busy the other takes what comes.
func (w *world) servedByAll(t *testing.T, x shares, addr net.Addr) {
	for i := range x {
		release := w.hold(i)
		before := x[1-i].Load()
		for range 10 {
			c := servertest.Dial(t, addr)
			hears("hello")(t, c)
			require.NoError(t, c.Close())
		}
		require.Equal(t, before+10, x[1-i].Load())
		release()
	}
	require.EqualValues(t, 20, x.sum())
	require.NoError(t, w.order(servertest.Drain))
}

// What stands in the way of a socket file shows in netpoll.
func TestUnixFile(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "s")
	v := &service.Listener{Address: "unix:" + path, Handler: answers("hello")}
	w := begin(t, act.Config{Schedulers: 2}, v.Setup)
	another := &service.Listener{Address: v.Address, Handler: answers("another")}
	require.EqualError(t, setUp(t, 2, another.Setup), "cannot listen on "+v.Address+": address already in use")
	hears("hello")(t, servertest.Dial(t, v.Addr()))
	require.Error(t, w.order(servertest.Cut))
	require.NoFileExists(t, path, "removed at the end")

	w = begin(t, act.Config{Schedulers: 2}, v.Setup)
	require.NoError(t, os.Remove(path)) // another program takes the path by force
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, w.order(servertest.Drain))
	require.FileExists(t, path)
}

func TestUnixErrorsNameThePath(t *testing.T) {
	for _, row := range []struct{ name, path, cause string }{
		{"nothing", "", "invalid"},
		{"in no folder", "/no/such/folder/s", "no such file"},
		{"longer than a socket's path can be", "/tmp/" + strings.Repeat("x", 120), "too long"},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := &service.Listener{Address: "unix:" + row.path, Handler: echo.Echo}
			sentence(t, setUp(t, 2, v.Setup), "unix:"+row.path, row.cause)
		})
	}
}

// The file has them before anybody can connect. Owner and group may be given alone, and by a name, whose number is another
// than that of the same name of the other kind. Of the mode only the permissions count.
func TestModeOwnerAndGroupOfASocketFile(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	group, err := user.LookupGroupId(strconv.Itoa(gid))
	require.NoError(t, err)
	type row struct {
		given    *service.Listener
		mode     fs.FileMode // 0 if it is the system's
		uid, gid int
	}
	rows := []row{
		{&service.Listener{Mode: 0o600, Owner: strconv.Itoa(uid), Group: strconv.Itoa(gid)}, 0o600, uid, gid},
		{&service.Listener{Mode: 0o666}, 0o666, uid, gid},
		{&service.Listener{Mode: fs.ModeSetuid | fs.ModeSticky | 0o640}, 0o640, uid, gid},
		{&service.Listener{Group: group.Name}, 0, uid, gid},
	}
	if uid == 0 { // only root can give a file away
		rows = append(rows, row{&service.Listener{Owner: "12345"}, 0, 12345, gid}, row{&service.Listener{Group: "12345"}, 0, 0, 12345},
			row{&service.Listener{Owner: "root", Group: "12345"}, 0, 0, 12345})
		if u, err := user.Lookup("sync"); err == nil { // its group is nogroup
			sync, err := strconv.Atoi(u.Uid)
			require.NoError(t, err)
			rows = append(rows, row{&service.Listener{Owner: u.Username}, 0, sync, gid})
		}
	}
	for i, row := range rows {
		v := row.given
		path := filepath.Join(servertest.ShortDir(t), "s")
		v.Address, v.Handler = "unix:"+path, answers("hello")
		w := begin(t, act.Config{Schedulers: 2}, v.Setup)
		info, err := os.Stat(path)
		require.NoError(t, err)
		if row.mode != 0 {
			require.Equal(t, fs.ModeSocket|row.mode, info.Mode(), "row %d", i)
		}
		require.EqualValues(t, row.uid, info.Sys().(*syscall.Stat_t).Uid, "row %d", i)
		require.EqualValues(t, row.gid, info.Sys().(*syscall.Stat_t).Gid, "row %d", i)
		servertest.Expect(t, servertest.Dial(t, v.Addr()), "hello")
		require.Error(t, w.order(servertest.Cut))
	}
}

// It does not start, and leaves no file.
func TestAServiceThatCannotSetTheOwnerOfItsSocketFile(t *testing.T) {
	for _, v := range []*service.Listener{{Owner: "no such user here"}, {Group: "no such group here"}} {
		path := filepath.Join(servertest.ShortDir(t), "s")
		v.Address, v.Handler = "unix:"+path, answers("hello")
		sentence(t, setUp(t, 1, v.Setup), path, "mode, owner or group of the socket file", "no such")
		require.NoFileExists(t, path)
	}
}

// Somebody may have put a link in the place of the file.
func TestTheOwnerOfALinkIsChangedAndNotThatOfItsTarget(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	target := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	link := target + " link"
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, service.Prepare(&service.Listener{Owner: "12345"}, link))
	info, err := os.Stat(target)
	require.NoError(t, err)
	require.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Uid)
}
