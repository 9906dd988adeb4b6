package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// patience bounds how long a replacement may take.
const patience = time.Minute

// host is where one system runs. All its processes end with close, including their children.
type host struct {
	Options
	ctx     context.Context
	dir     string // for files of this system and programs of all
	builder build.Builder
	backend string // the address of the server behind a proxy
	addr    string // where the system listens
	log     *os.File
	free    func()
	others  []int // children that this process had before
}

// open chooses the address. From now on a process whose parent has ended is a child of this one.
func (h *host) open(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl: %w", err)
	}
	at, free, err := server.Reserve()
	if err != nil {
		return err
	}
	h.ctx, h.addr, h.free, h.others = ctx, at.String(), free, server.Children(os.Getpid())
	if h.log, err = os.Create(filepath.Join(h.dir, "log")); err != nil {
		free()
	}
	return err
}

// close kills what runs.
func (h *host) close() {
	for {
		mine := slices.DeleteFunc(server.Children(os.Getpid()), func(pid int) bool { return slices.Contains(h.others, pid) })
		if len(mine) == 0 {
			break
		}
		for _, pid := range mine {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil) // its children are mine now
		}
	}
	_ = h.log.Close()
	h.free()
}

// run starts a program. What it says is in the log.
func (h *host) run(program string, arguments ...string) (pid int, err error) {
	cmd := exec.Command(program, arguments...)
	cmd.Stdout, cmd.Stderr = h.log, h.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process, which then closes the host
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// said returns the log.
func (h *host) said() string {
	text, _ := os.ReadFile(h.log.Name())
	return string(text)
}

// explain adds the log to an error.
func (h *host) explain(err error) error { return fmt.Errorf("%w; it said:\n%s", err, h.said()) }

// await waits until f returns true.
func (h *host) await(what string, f func() bool) error {
	for end := time.Now().Add(patience); !f(); {
		if time.Now().After(end) {
			return fmt.Errorf("waited %v in vain for %s", patience, what)
		}
		if err := h.pause(5 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// saysAgain waits until the log has a line with text more than before.
func (h *host) saysAgain(text string, f func() error) error {
	before := strings.Count(h.said(), text)
	if err := f(); err != nil {
		return err
	}
	return h.await(strconv.Quote(text), func() bool { return strings.Count(h.said(), text) > before })
}

// ends waits until a child of this process has ended.
func (h *host) ends(pid int) error {
	return h.await("the end of a process", func() bool {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return errors.Is(err, unix.ECHILD) || unix.Kill(pid, 0) != nil
	})
}

// pause waits for d.
func (h *host) pause(d time.Duration) error {
	select {
	case <-h.ctx.Done():
		return h.ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// sbin is where Debian installs servers, and only root's PATH looks.
var sbin = "/usr/sbin"

// find returns the path of a program.
func find(program, packages string) (string, error) {
	for _, name := range []string{program, filepath.Join(sbin, program)} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("it is not installed (Debian: apt-get install %s; or choose others with -systems)", packages)
}
