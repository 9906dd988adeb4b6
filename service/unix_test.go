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
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/service"
)

func TestUnixIsServedByAllSchedulers(t *testing.T) {
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		x := newShares(2)
		v := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: x.of(answers("hello"))}
		w := begin(t, cfg, v.Setup)
		require.Equal(t, "unix", v.Addr().Network())
		require.Equal(t, v.Path, v.Addr().String())
		w.servedByAll(t, x, v.Addr())
	})
}

// macOS, NetBSD and OpenBSD do not spread connections, so there all schedulers share one listening socket.
func TestTCPIsServedByAllSchedulersWithoutTheSystemsHelp(t *testing.T) {
	if netpoll.SpreadsTCP {
		t.Skip("the system spreads the connections")
	}
	servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
		x := newShares(2)
		v := &service.TCP{Address: loopback, Handler: x.of(answers("hello"))}
		w := begin(t, cfg, v.Setup)
		w.servedByAll(t, x, v.Addr())
	})
}

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

func TestUnixFile(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		refused string // for what; and what is there stays
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"a stale socket", func(t *testing.T, path string) {
			l := listen(t, path)
			l.SetUnlinkOnClose(false)
			require.NoError(t, l.Close())
		}, ""},
		{"a live socket", func(t *testing.T, path string) {
			l := listen(t, path)
			t.Cleanup(func() { _ = l.Close() })
		}, "address already in use"},
		{"a regular file", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
		}, "socket operation on non-socket"},
		{"a folder", func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o700))
		}, "socket operation on non-socket"},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: answers("hello")}
			row.prepare(t, v.Path)
			before, _ := os.Lstat(v.Path)
			if row.refused != "" {
				require.EqualError(t, setUp(t, 2, v.Setup), "cannot listen on unix:"+v.Path+": "+row.refused)
				after, err := os.Lstat(v.Path)
				require.NoError(t, err)
				require.True(t, os.SameFile(before, after))
				return
			}
			w := begin(t, act.Config{Schedulers: 2}, v.Setup)
			hears("hello")(t, servertest.Dial(t, v.Addr()))
			require.Error(t, w.order(servertest.Cut))
			_, err := os.Lstat(v.Path)
			require.ErrorIs(t, err, os.ErrNotExist, "the file is removed at the end")
		})
	}
}

func listen(t *testing.T, path string) *net.UnixListener {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	return l
}

func TestUnixFileOfAnotherProgramSurvives(t *testing.T) {
	v := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: answers("mine")}
	w := begin(t, act.Config{Schedulers: 2}, v.Setup)
	said, err := playChild(t, "listen on Unix", v.Path)
	require.Error(t, err)
	require.Equal(t, "cannot listen on unix:"+v.Path+": address already in use\n", said)
	hears("mine")(t, servertest.Dial(t, v.Addr()))

	require.NoError(t, os.Remove(v.Path)) // another program takes the path by force
	l := listen(t, v.Path)
	defer l.Close()
	require.Error(t, w.order(servertest.Cut))
	_, err = os.Lstat(v.Path)
	require.NoError(t, err)
}

func TestUnixErrorsNameThePath(t *testing.T) {
	for _, row := range []struct{ name, path, cause string }{
		{"nothing", "", "invalid"},
		{"in no folder", "/no/such/folder/s", "no such file"},
		{"longer than a socket's path can be", "/tmp/" + strings.Repeat("x", 120), "too long"},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := &service.Unix{Path: row.path, Handler: echo}
			sentence(t, setUp(t, 2, v.Setup), "unix:"+row.path, row.cause)
		})
	}
}

// The file has them before anybody can connect; a service that cannot set one of them does not start, and leaves no file.
func TestModeOwnerAndGroupOfASocketFile(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "s")
	own := strconv.Itoa(os.Getegid())
	for _, mode := range []fs.FileMode{0o600, 0o660, 0o666} {
		v := &service.Unix{Path: path, Handler: answers("hello"), Mode: mode, Owner: strconv.Itoa(os.Geteuid()), Group: own}
		w := begin(t, act.Config{Schedulers: 2}, v.Setup)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
		servertest.Expect(t, servertest.Dial(t, v.Addr()), "hello")
		require.Error(t, w.order(servertest.Cut))
	}
	me, err := user.Current()
	require.NoError(t, err)
	if me.Uid == "0" { // only root can give a file away
		v := &service.Unix{Path: path, Handler: answers("hello"), Owner: me.Username, Group: "12345"}
		w := begin(t, act.Config{Schedulers: 1}, v.Setup)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 12345, info.Sys().(*syscall.Stat_t).Gid)
		require.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Uid)
		require.NoError(t, w.order(servertest.Drain))
	}
	for _, v := range []*service.Unix{
		{Owner: "no such user here"}, {Group: "no such group here"}, {Owner: "no such user here", Group: own, Mode: 0o600},
	} {
		v.Path, v.Handler = path, answers("hello")
		sentence(t, setUp(t, 1, v.Setup), path, "mode, owner or group of the socket file", "no such")
		require.NoFileExists(t, path)
	}
}

func TestModeOfASocketFileHasOnlyPermissions(t *testing.T) {
	v := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: echo, Mode: fs.ModeSetuid | fs.ModeSticky | 0o640}
	w := begin(t, act.Config{Schedulers: 1}, v.Setup)
	info, err := os.Stat(v.Path)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o640, info.Mode())
	require.NoError(t, w.order(servertest.Drain))
}

// Each may be given alone, and by a name whose number is another than that of the other kind.
func TestOwnerAndGroupByName(t *testing.T) {
	group, err := user.LookupGroupId(strconv.Itoa(os.Getegid()))
	require.NoError(t, err)
	type row struct {
		owner, group string
		uid, gid     int
	}
	rows := []row{{"", group.Name, os.Geteuid(), os.Getegid()}}
	if os.Geteuid() == 0 { // only root can give a file away
		rows = append(rows, row{"12345", "", 12345, os.Getegid()}, row{"", "12345", 0, 12345})
		if u, err := user.Lookup("sync"); err == nil { // its group is nogroup
			uid, err := strconv.Atoi(u.Uid)
			require.NoError(t, err)
			rows = append(rows, row{u.Username, "", uid, os.Getegid()})
		}
	}
	for _, row := range rows {
		v := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: echo, Owner: row.owner, Group: row.group}
		w := begin(t, act.Config{Schedulers: 1}, v.Setup)
		info, err := os.Stat(v.Path)
		require.NoError(t, err)
		require.EqualValues(t, row.uid, info.Sys().(*syscall.Stat_t).Uid)
		require.EqualValues(t, row.gid, info.Sys().(*syscall.Stat_t).Gid)
		require.NoError(t, w.order(servertest.Drain))
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
	require.NoError(t, service.Prepare(&service.Unix{Owner: "12345"}, link))
	info, err := os.Stat(target)
	require.NoError(t, err)
	require.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Uid)
}
