// Package server runs an echo server as a process of its own, and reads what it costs.
package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds how long a server may take to listen, and to end.
const patience = 5 * time.Second

// Process is an echo server: a process of its own on a port of its own, which lives for the whole
// measurement.
type Process struct {
	Name    string
	Program string // takes the flags -addr and -reactors
	Port    int    // chosen by Start
	PID     int    // set by Start
	cmd     *exec.Cmd
	end     context.CancelFunc
}

// Start runs the program, with further flags if there are any, until ctx ends (then SIGTERM, after
// patience SIGKILL) and returns when it can be dialled. After an error it does not run.
func (s *Process) Start(ctx context.Context, reactors int, flags ...string) (err error) {
	if s.Port, err = freePort(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, s.Program, append([]string{"-addr", s.Addr(), "-reactors", strconv.Itoa(reactors)}, flags...)...)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = patience
	s.end = cancel
	if err := s.cmd.Start(); err != nil {
		cancel()
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.PID = s.cmd.Process.Pid
	if err := s.await(); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// freePort asks the kernel. Somebody else may take it before the server does; then it says so and ends.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Addr is where it listens.
func (s *Process) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.Port) }

func (s *Process) await() error {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Addr())
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not listen: %w", s.Name, err)
		}
	}
}

// Stop ends the process and waits for it. How it ended is not judged here: the C server has no orderly
// end.
func (s *Process) Stop() {
	s.end()
	_ = s.cmd.Wait()
}

// CPU is the CPU time the process has used, all its threads, those that have ended too, user and
// system. It is the kernel's CPU clock of the process (clock_getcpuclockid(3) gives the number): exact
// to the ns at the moment of the call, where utime and stime of /proc/PID/stat are samples of 4 or
// 10 ms and the schedstat of a thread is gone with the thread.
func (s *Process) CPU() (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED: the scheduler's own account
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^s.PID)<<3|sched, &t); err != nil {
		return 0, fmt.Errorf("%s has ended: %w", s.Name, err)
	}
	return time.Duration(t.Nano()), nil
}
