// Package server runs a server as a separate process and measures its cost.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/cpu"
)

// patience bounds how long a server may take to listen, and to end.
const patience = time.Minute

// Process is a server: a process of its own on a port of its own, which lives for the whole measurement.
type Process struct {
	Name     string
	Program  string // takes the flags -addr and -reactors
	Reactors int
	Flags    []string // further ones
	Anywhere bool     // on all CPUs; otherwise see cpus
	Workers  int      // further processes that it runs; Start waits for them
	Further  []string // addresses where it listens as well; Start waits for them
	UDP      bool     // it receives datagrams, and need not listen
	Port     int      // chosen by Start
	PID      int      // set by Start

	cmd      *exec.Cmd
	end      func()
	patience time.Duration // for it to listen; 0: the constant
}

// StartAll starts the servers one after the other. stop ends the servers that run. It is not nil even if there is an
// error.
func StartAll(ctx context.Context, all []*Process) (stop func(), err error) {
	var started []*Process
	stop = func() {
		for _, s := range started {
			s.Stop()
		}
	}
	for _, s := range all {
		if err := s.Start(ctx); err != nil {
			return stop, err
		}
		started = append(started, s)
	}
	return stop, nil
}

// Start runs the program until ctx ends (then it sends SIGTERM, and after patience SIGKILL). It returns when the server
// accepts connections and its workers run. After an error it does not run.
func (s *Process) Start(ctx context.Context) error {
	at, free, err := Reserve()
	if err != nil {
		return err
	}
	s.Port = at.Port
	ctx, cancel := context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, s.Program, append([]string{"-addr", s.Addr(), "-reactors", strconv.Itoa(s.Reactors)}, s.Flags...)...)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = patience
	cpus, err := s.cpus()
	if err == nil {
		err = cpu.On(cpus, s.cmd.Start)
	}
	if err != nil {
		cancel()
		free()
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.PID = s.cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // the exit status is ignored: the C server has no orderly end
		close(ended)
	}()
	s.end = sync.OnceFunc(func() {
		cancel()
		<-ended
		free()
	})
	if err := s.await(ended); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// cpus returns the CPUs on which the server runs: the first ones, as many as it has schedulers, so that the load generator, which
// has one CPU for all, shares it with each alike. None means anywhere: there are too few, or it has no number of schedulers.
func (s *Process) cpus() ([]int, error) {
	all, err := cpu.Allowed()
	if err != nil || s.Anywhere || s.Reactors > len(all) {
		return nil, err
	}
	return all[:s.Reactors], nil
}

// Reserve binds a socket that never listens to a free port of 127.0.0.1, and returns its address. Until free is called the
// kernel gives that port to nobody that asks for any port; a server that sets SO_REUSEADDR can listen on it: socket(7).
func Reserve() (at *net.TCPAddr, free func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socket", err)
	}
	free = func() { unix.Close(fd) }
	loopback := [4]byte{127, 0, 0, 1}
	var name unix.Sockaddr
	err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	if err == nil {
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}))
	}
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		free()
		return nil, nil, err
	}
	return &net.TCPAddr{IP: loopback[:], Port: name.(*unix.SockaddrInet4).Port}, free, nil
}

// Addr is where it listens.
func (s *Process) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.Port) }

// await waits until the server is ready. One that has ended will not be.
func (s *Process) await(ended <-chan struct{}) error {
	for end := time.Now().Add(cmp.Or(s.patience, patience)); ; {
		err := s.ready()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ended:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Process) ready() error {
	if s.UDP {
		if c, err := net.ListenPacket("udp", s.Addr()); err == nil {
			c.Close()
			return fmt.Errorf("%s has no socket of UDP", s.Name)
		}
		return nil
	}
	for _, at := range append([]string{s.Addr()}, s.Further...) {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return fmt.Errorf("%s does not listen: %w", s.Name, err)
		}
		c.Close()
	}
	if n := len(s.family()) - 1; n != s.Workers {
		return fmt.Errorf("%s runs %d processes beside itself, not %d", s.Name, n, s.Workers)
	}
	return nil
}

// Stop ends the process and waits for it.
func (s *Process) Stop() { s.end() }

// family is the process, its children, and theirs.
func (s *Process) family() []int {
	all := []int{s.PID}
	for i := 0; i < len(all); i++ {
		all = append(all, Children(all[i])...)
	}
	return all
}

// Children returns the children of a process: proc_pid_task(5), "children". A kernel without that file has
// CONFIG_PROC_CHILDREN switched off; there a server with workers is refused by Start, not measured by half.
func Children(of int) (all []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of)) // the pattern is a good one
	for _, children := range tasks {
		text, _ := os.ReadFile(children) // a thread that has ended has no children
		for _, pid := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(pid); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// CPU returns the CPU time that the process and its workers have used, user and system, including threads that have ended.
// It is the kernel's CPU clock of a process (clock_getcpuclockid(3) gives the number): exact
// to the ns at the moment of the call, where utime and stime of /proc/PID/stat are samples of 4 or
// 10 ms and the schedstat of a thread is gone with the thread.
func (s *Process) CPU() (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED: the scheduler's own account
	var sum time.Duration
	for _, pid := range s.family() {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid)<<3|sched, &t); err != nil {
			return 0, fmt.Errorf("%s has ended: %w", s.Name, err)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// Switches returns how often threads of the process and its workers have gone to sleep: voluntary_ctxt_switches of
// proc_pid_status(5). Threads that have ended do not count.
func (s *Process) Switches() (sum int) {
	for _, pid := range s.family() {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is a good one
		for _, task := range tasks {
			text, _ := os.ReadFile(task) // a thread may have ended meanwhile
			_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
			var n int
			if _, err := fmt.Sscan(rest, &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// Memory returns the resident set of the process and its workers, in bytes. Shared pages count in each process, so only
// its growth is meaningful. The kernel walks the page tables for it; the figures of /proc/PID/statm are kept by each CPU and
// collected now and then.
func (s *Process) Memory() (sum int, err error) {
	for _, pid := range s.family() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, fmt.Errorf("memory of %s: %w", s.Name, err)
		}
		_, rest, _ := strings.Cut(string(text), "\nRss:")
		var kilobytes int
		if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
			return 0, fmt.Errorf("memory of %s: %w", s.Name, errors.Join(err, errors.New(string(text))))
		}
		sum += kilobytes << 10
	}
	return sum, nil
}
