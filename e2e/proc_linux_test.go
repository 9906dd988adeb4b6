package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the kernel shows of a process: proc_pid_status(5), proc_pid_stat(5), and
// Documentation/scheduler/sched-stats.rst for the times of threads in nanoseconds.

// A thread is the count of one thread of the server.
type thread struct {
	id       string
	cpus     string // as a list: "0-1"
	switches int64  // voluntary: the thread gave up its CPU to wait
	cpu      time.Duration
	queued   time.Duration // it could run, and others had the CPUs
}

// pinned reports whether th is a reactor: the threads of the Go runtime have no CPU of their own.
func (th thread) pinned() bool { return !strings.ContainsAny(th.cpus, ",-") }

func (s *server) threads(t *testing.T) []thread {
	t.Helper()
	folders, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", s.Pid))
	require.NoError(t, err)
	require.NotEmpty(t, folders, "the server is gone")
	var all []thread
	for _, folder := range folders {
		if th, ok := readThread(folder); ok {
			all = append(all, th)
		}
	}
	return all
}

// readThread reports false for a thread that has ended meanwhile.
func readThread(folder string) (thread, bool) {
	status, err := os.ReadFile(folder + "/status")
	times, err2 := os.ReadFile(folder + "/schedstat")
	if err != nil || err2 != nil {
		return thread{}, false
	}
	on, rest, _ := strings.Cut(string(times), " ")
	queued, _, _ := strings.Cut(rest, " ")
	return thread{
		id:       filepath.Base(folder),
		cpus:     field(string(status), "Cpus_allowed_list"),
		switches: number(field(string(status), "voluntary_ctxt_switches")),
		cpu:      time.Duration(number(on)),
		queued:   time.Duration(number(queued)),
	}, true
}

// reactors returns the threads that have a CPU of their own.
func (s *server) reactors(t *testing.T) []thread {
	t.Helper()
	var reactors []thread
	for _, th := range s.threads(t) {
		if th.pinned() {
			reactors = append(reactors, th)
		}
	}
	return reactors
}

// cpu returns the time that the server's threads have run so far.
func (s *server) cpu(t *testing.T) (spent time.Duration) {
	t.Helper()
	for _, th := range s.threads(t) {
		spent += th.cpu
	}
	return spent
}

// cpuOver returns the CPU time that the server takes in the next d.
func (s *server) cpuOver(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	before := s.cpu(t)
	time.Sleep(d)
	return s.cpu(t) - before
}

// polled returns how many sockets each poller of the server has: each reactor has one, and the Go runtime, if
// it needs one, which has no socket here. proc_pid_fdinfo(5) has a line for each that begins with tfd.
func (s *server) polled(t *testing.T) map[string]int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid))
	require.NoError(t, err)
	pollers := map[string]int{}
	for _, fd := range open {
		what, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.Pid, fd.Name()))
		if strings.Contains(what, "[eventpoll]") {
			for _, line := range watched.FindAllStringSubmatch(s.proc(t, "fdinfo/"+fd.Name()), -1) {
				if what, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.Pid, line[1])); strings.HasPrefix(what, "socket:") {
					pollers[fd.Name()]++
				}
			}
		}
	}
	return pollers
}

var watched = regexp.MustCompile(`(?m)^tfd: +(\d+) `)

// state returns the letter of the process state: S sleeping, T stopped.
func (s *server) state(t *testing.T) string {
	t.Helper()
	stat := s.proc(t, "stat")
	return strings.Fields(stat[strings.LastIndex(stat, ")")+1:])[0]
}

func (s *server) proc(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.Pid, file))
	require.NoError(t, err)
	return string(text)
}

func field(status, name string) string {
	_, rest, _ := strings.Cut("\n"+status, "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// number is zero for what is none, as of a thread that ends while it is read.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}
