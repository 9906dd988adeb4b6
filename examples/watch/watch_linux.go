package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// folder is the task that prints what happens in a directory.
type folder struct {
	fd               int
	*monitor.Watched // closed when the task leaves, and says what the task waits for
	buffer           [4096]byte
}

func watchFolder(s *act.Scheduler, path string) (*monitor.Watched, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	f := &folder{fd: fd}
	if _, err = unix.InotifyAddWatch(fd, path, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MODIFY|unix.IN_MOVE); err == nil {
		f.Watched, err = monitor.Watch(s, fd, netpoll.In)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), unix.Close(fd))
	}
	s.Spawn(f)
	return f.Watched, nil
}

func (f *folder) Act(t *act.Task) act.Directive {
	reported := f.Readable()
	if _, blocked := reported.(act.Blocked); blocked {
		return listener.Next(t, reported)
	}
	for {
		n, err := unix.Read(f.fd, f.buffer[:])
		switch {
		case err == unix.EAGAIN && reported != nil: // the program has ended
			_ = unix.Close(f.fd)
			return act.Done
		case err == unix.EAGAIN:
			return act.Yield // and wait for the next report
		case err != nil:
			return t.Fail(err)
		}
		show(f.buffer[:n])
	}
}

var happenings = map[uint32]string{unix.IN_CREATE: "made", unix.IN_DELETE: "removed", unix.IN_MODIFY: "changed",
	unix.IN_MOVED_FROM: "moved away", unix.IN_MOVED_TO: "moved here", unix.IN_Q_OVERFLOW: "has lost events",
	unix.IN_IGNORED: "is gone", unix.IN_UNMOUNT: "was unmounted"}

// show prints events of inotify(7): each has a head of 16 bytes, with what has happened, and a name that zeros follow, or none.
func show(events []byte) {
	for len(events) > 0 {
		mask, n := binary.NativeEndian.Uint32(events[4:]), 16+binary.NativeEndian.Uint32(events[12:])
		fmt.Println(cmp.Or(strings.TrimRight(string(events[16:n]), "\x00"), "directory"), happenings[mask&^unix.IN_ISDIR])
		events = events[n:]
	}
}

func watchChild(s *act.Scheduler, args []string, end func(error)) error {
	cmd, fd := exec.Command(args[0], args[1:]...), -1
	cmd.SysProcAttr = &unix.SysProcAttr{PidFD: &fd}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	watch, err := monitor.Watch(s, fd, netpoll.In)
	if err != nil {
		return errors.Join(err, unix.Close(fd), cmd.Process.Kill(), cmd.Wait())
	}
	s.Spawn(act.Seq(&listener.Ready{Of: watch}, act.Func(func(*act.Task) act.Directive {
		_, _ = watch.Close(), unix.Close(fd)
		end(cmd.Wait()) // which waits no more
		return act.Done
	})))
	return nil
}
