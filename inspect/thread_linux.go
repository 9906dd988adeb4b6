//go:build linux

package inspect

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// glance is what the kernel says of a thread at one moment: see proc_pid_stat(5), proc_pid_schedstat(5) and
// proc_pid_syscall(5).
type glance struct {
	state  byte          // R running or ready, S sleeping, D sleeping in the kernel, T and t stopped; 0 not known
	cpu    time.Duration // it has used
	waited time.Duration // for a CPU, until it had one
	call   int           // the number of the system call that it is blocked in; fault, or none
	first  uint64        // the first argument of the call
	pc     uint64        // where it entered the kernel, if it is blocked
}

const (
	none  = -2 // not blocked, or not known
	fault = -1 // blocked in the kernel, and not in a system call
)

// glanceAt reads what the kernel says of a thread of this process. That takes about 20 µs.
func glanceAt(tid uint64) glance {
	read := func(name string) string {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/%s", tid, name)) // the thread may have ended
		return string(b)
	}
	g := glance{call: none}
	g.parseCall(read("syscall"))
	g.parseStat(read("stat"))
	g.parseSchedstat(read("schedstat"))
	return g
}

// parseStat reads "12 (name) S …". The name is the program's, and may contain anything. The time on a CPU is in hundredths of a
// second here: kernels without schedstat have no better one.
func (g *glance) parseStat(line string) {
	i := strings.LastIndexByte(line, ')')
	if i < 0 || len(line) <= i+2 {
		return
	}
	g.state = line[i+2]
	if f := strings.Fields(line[i+2:]); len(f) > 12 {
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		g.cpu = time.Duration(user+system) * (time.Second / 100)
	}
}

// parseSchedstat reads "9120000 13000 4": nanoseconds on a CPU and ready without one, and how often it had one.
func (g *glance) parseSchedstat(line string) {
	if f := strings.Fields(line); len(f) == 3 {
		cpu, _ := strconv.ParseInt(f[0], 10, 64)
		waited, _ := strconv.ParseInt(f[1], 10, 64)
		g.cpu, g.waited = time.Duration(cpu), time.Duration(waited)
	}
}

// parseCall reads "running", "0 0x7 … sp pc", or "-1 sp pc".
func (g *glance) parseCall(line string) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return
	}
	number, err := strconv.Atoi(f[0])
	if err != nil {
		return
	}
	g.call = number
	g.first, _ = strconv.ParseUint(f[1], 0, 64)
	g.pc, _ = strconv.ParseUint(f[len(f)-1], 0, 64)
}

// judge returns why the thread has not gone on between two glances, as far as the kernel knows. On a busy machine a thread
// that computes is ready for most of the time, and yet at fault if it had a CPU for longer than the limit.
func judge(before, now glance, passed, limit time.Duration) (cause, string) {
	cpu := now.cpu - before.cpu
	switch {
	case now.state == 0:
		return unknown, ""
	case now.state == 'T' || now.state == 't':
		return stopped, ""
	case 2*cpu >= passed || now.state == 'R' && cpu >= limit:
		return computing, ""
	case now.state == 'R' || 2*(now.waited-before.waited) >= passed:
		return waitsForCPU, ""
	case now.parked():
		return parked, ""
	case now.call == none:
		return unknown, ""
	}
	return inSystemCall, now.callName()
}

// parked reports whether the thread has no goroutine to run: the one that is locked to it waits in the runtime.
func (g *glance) parked() bool {
	return g.call == unix.SYS_FUTEX && runtime.FuncForPC(uintptr(g.pc)).Name() == "runtime.futex" // "" of a nil Func
}

// inKernel reports whether the thread is blocked by something other than the runtime.
func (g *glance) inKernel() bool { return g.call != none && !g.parked() }

// starved reports whether a profile would have to wait for the thread: it is ready and gets no CPU, or nothing is known
// but that it sleeps.
func (g *glance) starved(cause cause) bool {
	return g.state == 'R' && cause == waitsForCPU || g.call == none && g.state != 'R' && g.state != 0
}

// callName names the call, and what the descriptor is that it was given: "read of pipe:[4711]". Of a file it is "read of a file",
// since a client may have chosen its name.
func (g *glance) callName() string {
	if g.call == fault {
		return "a page fault"
	}
	name, ok := calls[g.call]
	if !ok {
		return fmt.Sprintf("system call %d", g.call)
	}
	if name, of := strings.CutSuffix(name, " of"); of {
		if what, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", g.first)); err == nil {
			if strings.HasPrefix(what, "/") && !strings.HasPrefix(what, "/dev/") {
				what = "a file"
			}
			return name + " of " + what
		}
		return name
	}
	return name
}

// calls are system calls that can take long. If a name ends in "of", the first argument of the call is a descriptor.
var calls = map[int]string{
	unix.SYS_READ: "read of", unix.SYS_READV: "readv of", unix.SYS_PREAD64: "pread64 of", unix.SYS_PREADV: "preadv of",
	unix.SYS_WRITE: "write of", unix.SYS_WRITEV: "writev of", unix.SYS_PWRITE64: "pwrite64 of", unix.SYS_PWRITEV: "pwritev of",
	unix.SYS_FSYNC: "fsync of", unix.SYS_FDATASYNC: "fdatasync of", unix.SYS_FALLOCATE: "fallocate of",
	unix.SYS_FTRUNCATE: "ftruncate of", unix.SYS_GETDENTS64: "getdents64 of", unix.SYS_CLOSE: "close of",
	unix.SYS_FLOCK: "flock of", unix.SYS_FCNTL: "fcntl of", unix.SYS_IOCTL: "ioctl of", unix.SYS_SENDFILE: "sendfile of",
	unix.SYS_SPLICE: "splice of", unix.SYS_COPY_FILE_RANGE: "copy_file_range of",
	unix.SYS_CONNECT: "connect of", unix.SYS_ACCEPT4: "accept4 of", unix.SYS_RECVFROM: "recvfrom of",
	unix.SYS_RECVMSG: "recvmsg of", unix.SYS_SENDTO: "sendto of", unix.SYS_SENDMSG: "sendmsg of",
	unix.SYS_EPOLL_PWAIT: "epoll_pwait of", unix.SYS_EPOLL_PWAIT2: "epoll_pwait2 of",
	unix.SYS_OPENAT: "openat", unix.SYS_OPENAT2: "openat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_STATX: "statx",
	unix.SYS_RENAMEAT2: "renameat2", unix.SYS_SYNC: "sync", unix.SYS_PPOLL: "ppoll", unix.SYS_PSELECT6: "pselect6",
	unix.SYS_NANOSLEEP: "nanosleep", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep", unix.SYS_FUTEX: "futex",
	unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid", unix.SYS_MMAP: "mmap", unix.SYS_MUNMAP: "munmap",
	unix.SYS_MADVISE: "madvise", unix.SYS_MSYNC: "msync", unix.SYS_GETRANDOM: "getrandom",
	unix.SYS_IO_URING_ENTER: "io_uring_enter",
}
