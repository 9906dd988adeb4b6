package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/exectest"
	osthread "github.com/daimon-go/daimon/internal/thread"
)

// Those that need Linux.
func init() {
	stalls["fifo"] = func() string {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			panic(err)
		}
		defer func() { _, _ = unix.Close(p[0]), unix.Close(p[1]) }()
		time.AfterFunc(stalled, func() { _, _ = syscall.Write(p[1], []byte{1}) })
		at := below()
		_, _ = syscall.Read(p[0], make([]byte, 1))
		return at
	}
	// The thread has the lowest priority from here on, and its CPU to share with one that computes.
	stalls["starved"] = func() string {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
		if err := errors.Join(osthread.Pin(osthread.CPUs()[0]), unix.SchedSetAttr(0, &attr, 0)); err != nil {
			panic(err)
		}
		until := time.Now().Add(stalled)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err := osthread.Pin(osthread.CPUs()[0]); err != nil {
				panic(err)
			}
			for time.Now().Before(until) {
			}
		}()
		for time.Now().Before(until) {
		}
		return ""
	}
}

// A server under load has a handler that stalls its scheduler for 200 ms. The log and the pages name the cause, the client and
// the line while it lasts. No other client goes without its answer.
func TestAStallIsNamedWhileItRuns(t *testing.T) {
	plainly(t)
	for _, row := range []struct {
		name   string
		cause  inspect.Cause
		detail string
	}{
		{"computing", inspect.Computing, ""},
		{"fifo", inspect.InSystemCall, `^read of pipe:\[\d+\]$`},
		{"lock", inspect.Parked, `^sync\.\(\*Mutex\)\.Lock$`},
		{"channel", inspect.Parked, "^a receive from a channel$"},
		{"sleep", inspect.Parked, `^time\.Sleep$`},
		{"collector", inspect.Collector, ""},
		{"starved", inspect.WaitsForCPU, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, v := serveStalling(t)
			load := s.load(t, 8)
			until := time.Now().Add(3 * patience)
			for {
				found, at := s.stallOnce(t, v, row.name)
				// On a busy machine other causes are true as well: the thread has no CPU, or the stall has ended before the
				// pages were asked. Then it is tried again.
				if found != nil && found.Cause == row.cause && !found.Ended {
					require.Regexp(t, row.detail, found.Detail)
					if at != "" {
						require.Equal(t, at, found.At)
					}
					t.Logf("%+v", *found)
					break
				}
				require.True(t, time.Now().Before(until), "not named: %+v", found)
			}
			require.NoError(t, load())
			s.Stop(t)
		})
	}
}

func serveStalling(t *testing.T) (*server, *viewer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, append([]string{"-addr", "127.0.0.1:0", "-reactors", "2"}, inspectable...)...)
	cmd.Env = append(os.Environ(), asStalls+"=1")
	s := &server{Program: exectest.Start(t, cmd)}
	s.Listens(t, s.Said)
	s.at(s.Addr)
	return s, viewerOf(t, s.Program)
}

// load has n clients ask, each a thousand times a second at most, until the function is called that it returns. That function
// wants an answer to every request.
func (s *server) load(t *testing.T, n int) (end func() error) {
	t.Helper()
	var over atomic.Bool
	guests := make([]*guest, n)
	for i := range guests {
		guests[i] = s.guest(t)
	}
	served := make(chan error, 1)
	go func() {
		served <- together(n, func(i int) error {
			for !over.Load() {
				if err := guests[i].ask("GET", "/"); err != nil {
					return err
				}
				if status, body, err := guests[i].hear(); err != nil || status != 200 || body != "hello" {
					return fmt.Errorf("%d %q: %w", status, body, err)
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		})
	}()
	return func() error {
		over.Store(true)
		return <-served
	}
}

var stallLine = regexp.MustCompile(`(?m)a turn holds up its scheduler\s(\{.*\})$`)

// stallOnce has a handler stall. It returns what the pages say meanwhile, nil if the log has said nothing meanwhile, and the
// line of the handler. What the log says has to be the same.
func (s *server) stallOnce(t *testing.T, v *viewer, name string) (found *inspect.Stall, at string) {
	t.Helper()
	before := len(stallLine.FindAllString(s.Said(), -1))
	g := s.guest(t)
	defer g.Close()
	require.NoError(t, g.ask("GET", "/"+name))
	answered := make(chan error, 1)
	go func() {
		status, body, err := g.hear()
		if at = body; status != 200 && err == nil {
			err = fmt.Errorf("status %d", status)
		}
		answered <- err
	}()
	for {
		lines := stallLine.FindAllStringSubmatch(s.Said(), -1)
		if len(lines) > before {
			for _, x := range v.report(t).Stalls.Last {
				if x.Peer == g.LocalAddr().String() {
					found = &x
				}
			}
			require.NoError(t, <-answered)
			line := lines[len(lines)-1][1]
			if found != nil && strings.Contains(line, fmt.Sprintf(`"peer": %q`, found.Peer)) {
				require.Contains(t, line, fmt.Sprintf(`"cause": %q`, found.Cause))
				require.Contains(t, line, fmt.Sprintf(`"kind": %q`, found.Kind))
				require.Equal(t, "tcp "+s.Addr, found.Kind)
				if found.At != "" {
					require.Contains(t, line, fmt.Sprintf(`"at": %q`, found.At))
				}
			}
			return found, at
		}
		select {
		case err := <-answered: // a line may come late, or not at all if there were many
			require.NoError(t, err)
			return nil, at
		case <-time.After(time.Millisecond):
		}
	}
}
