//go:build linux

package inspect

import (
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// gate holds up a turn until the watchdog has reported it.
type gate struct {
	open atomic.Bool
	ch   chan struct{}
	line atomic.Value // where it is held up
}

// next returns the gate and notes the line below the call.
func (g *gate) next() *gate {
	_, file, line, _ := runtime.Caller(1)
	g.line.Store(fmt.Sprintf("github.com/daimon-go/daimon/inspect/%s:%d", filepath.Base(file), line+1))
	return g
}

// plant runs a scheduler on which hold is called until a report of this cause, and of the line that the gate has noted
// unless that cause leaves no stack, has come meanwhile. On a busy machine it may be reported as waiting for a CPU
// first, which is true, and as what it is after a second. If it is not, hold is called again.
func plant(t *testing.T, want cause, posted bool, hold func(*gate)) stall {
	t.Helper()
	var now atomic.Pointer[gate]
	found := make(chan stall, 1)
	d := newWatchdog(Watch{}, nil, zap.NewNop())
	d.start()
	defer d.close()
	ended := make(chan bool)
	defer close(ended)
	go func() { // it opens the gates
		for len(found) == 0 {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
			last, g := d.stalls().Last, now.Load()
			if len(last) == 0 || last[0].Ended || g.open.Load() {
				continue
			}
			s := last[0]
			right := s.Cause == want && (want == inSystemCall || s.At == g.line.Load())
			if right {
				found <- s
			}
			if right || s.Lasted >= again {
				g.open.Store(true)
				close(g.ch)
			}
		}
	}()

	cfg, x := act.Config{}, &Inspector{Watch: Watch{Limit: -1}}
	x.Configure(&cfg)
	held := func() {
		g := &gate{ch: make(chan struct{})}
		now.Store(g)
		hold(g)
	}
	pending := false
	over := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: hold may do anything to the thread
		s := act.New(cfg)
		if err := x.Setup(s); err != nil {
			over <- err
		}
		d.watch(&probes.Get(s).watched, 3)
		s.Spawn(act.Func(func(*act.Task) act.Directive {
			if len(found) > 0 {
				return act.Done
			}
			switch {
			case !posted:
				held()
			case !pending: // a pass is one stall, with all functions that it calls
				pending = true
				_ = s.Post(func(*act.Scheduler) {
					held()
					pending = false
				})
			}
			return act.Yield
		}))
		err := s.Run()
		_ = s.Close()
		over <- err
	}()
	require.NoError(t, <-over)
	s := <-found
	require.Equal(t, 3, s.Scheduler)
	require.False(t, s.Ended)
	require.GreaterOrEqual(t, s.Lasted, 50*time.Millisecond)
	if posted {
		require.Empty(t, s.Kind)
	} else {
		require.Contains(t, s.Kind, "inspect.plant")
		require.NotZero(t, s.Task)
	}
	return s
}

// timer returns a descriptor from which a read takes d, even if a signal of the runtime interrupts it.
func timer(d time.Duration) int {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		panic(err)
	}
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil); err != nil {
		panic(err)
	}
	return fd
}

func rawRead(fd int) {
	var expired [8]byte
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&expired)), 8)
	_ = unix.Close(fd)
}

func TestWhatHoldsUpASchedulerIsNamed(t *testing.T) {
	for _, row := range []struct {
		name   string
		cause  cause
		posted bool
		stall  func(*gate)
		detail string
		fn     string // of the culprit
		slow   bool
	}{
		{"a loop in a coroutine", computing, false, inCoroutine, "", "inCoroutine.func1", true},
		{"a system call in a posted function", inSystemCall, true, blockedRead, `^read of pipe:\[\d+\]$`, "", false},
		{"a lock", parked, false, locked, `^sync\.\(\*Mutex\)\.Lock$`, "locked", true},
		{"a collection", collector, false, collects, "", "collects", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.slow {
				tier.Need(t, tier.Full, "takes a second, after which a stall is looked at again")
			}
			s := plant(t, row.cause, row.posted, row.stall)
			require.Regexp(t, row.detail, s.Detail)
			if row.cause == inSystemCall {
				require.Empty(t, s.Stack, "a profile might have had to wait for the end of the call")
				return
			}
			require.Regexp(t, `\.`+row.fn+"$", s.Func)
			require.NotEmpty(t, s.Stack)
			require.Contains(t, fmt.Sprint(s.Stack), s.Func+" "+s.At)
			require.NotContains(t, fmt.Sprint(s.Stack), schedulerMethod, "the stack is that of the turn")
		})
	}
}

func inCoroutine(g *gate) {
	next, stop := iter.Pull(func(yield func(int) bool) {
		yield(1)
		g.next()
		for !g.open.Load() {
		}
	})
	idle, stopIdle := iter.Pull(func(yield func(int) bool) { yield(1) }) // another one, which has switched
	defer stopIdle()
	defer stop()
	_, _ = idle()
	_, _ = next()
	_, _ = next()
}

func blockedRead(g *gate) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		panic(err)
	}
	defer func() { _, _ = unix.Close(p[0]), unix.Close(p[1]) }()
	go func() {
		<-g.ch
		_, _ = syscall.Write(p[1], []byte{1})
	}()
	_, _ = syscall.Read(p[0], make([]byte, 1))
}

func locked(g *gate) {
	var mu sync.Mutex
	mu.Lock()
	go func() {
		<-g.ch
		mu.Unlock()
	}()
	g.next()
	mu.Lock()
}

func collects(g *gate) {
	for !g.open.Load() {
		g.next()
		runtime.GC()
	}
}

// While a thread is in a system call that may hold its processor, goroutines are not stopped for the stack of another one.
func TestAnotherSchedulerInASystemCallIsWaitedForByNobody(t *testing.T) {
	c := newClocked(t, Watch{})
	blocked, other := c.scheduler(), c.scheduler()
	var done atomic.Bool
	var sleeper sync.WaitGroup
	bound := make(chan bool)
	sleeper.Go(func() {
		runtime.LockOSThread()
		blocked.bind()
		blocked.turn(zero, 1, -1)
		close(bound)
		for !done.Load() {
			rawRead(timer(100 * time.Millisecond))
		}
		blocked.away()
	})
	defer sleeper.Wait()
	defer done.Store(true)
	<-bound
	for {
		other.turn(one, 2, -1)
		c.reports = limiter{}
		c.polls(3)
		if s := c.stalls().Last[0]; s.Task == 2 && s.Detail != "" {
			require.Equal(t, "its stack is not known, since another scheduler is in a system call", s.Detail)
			require.Empty(t, s.Stack)
			return
		}
	}
}

func TestFilesOfAThread(t *testing.T) {
	for _, row := range []struct {
		name                 string
		stat, sched, syscall string
		want                 glance
	}{
		{"running", "7 (a b) R 1 7 7", "9120000 13000 4\n", "running\n",
			glance{state: 'R', cpu: 9120000, waited: 13000, call: none}},
		{"in a call", "7 (a) S 1", "1 2 3\n", "0 0x7 0x2 0x3 0x4 0x5 0x6 0x7ffe10 0x40a1ee\n",
			glance{state: 'S', cpu: 1, waited: 2, call: 0, first: 7, pc: 0x40a1ee}},
		{"a page fault", "7 (a) D 1", "1 2 3\n", "-1 0x7ffe10 0x40a1ee\n",
			glance{state: 'D', cpu: 1, waited: 2, call: fault, first: 0x7ffe10, pc: 0x40a1ee}},
		{"a program with a strange name", "7 (a) R (b)) S 1", "", "", glance{state: 'S', call: none}},
		{"a kernel without schedstat", "7 (a b) R 1 7 7 0 -1 4194304 300 0 0 0 12 3 0 0 20", "", "running\n",
			glance{state: 'R', cpu: 150 * time.Millisecond, call: none}},
		{"no such thread", "", "", "", glance{call: none}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := glance{call: none}
			g.parseCall(row.syscall)
			g.parseStat(row.stat)
			g.parseSchedstat(row.sched)
			require.Equal(t, row.want, g)
		})
	}
	g := glance{call: fault}
	require.Equal(t, "a page fault", g.callName())
	g = glance{call: 9999}
	require.Equal(t, "system call 9999", g.callName())
}

func TestJudge(t *testing.T) {
	const passed, limit = time.Second, 50 * time.Millisecond
	before := glance{state: 'R', cpu: time.Hour, waited: time.Minute, call: none}
	for _, row := range []struct {
		name string
		now  glance
		want cause
	}{
		{"half of the time on a CPU", glance{state: 'R', cpu: passed / 2, call: none}, computing},
		{"also if it is in a call just now", glance{state: 'S', cpu: passed / 2, call: unix.SYS_READ}, computing},
		{"for longer than the limit on a CPU, and ready now", glance{state: 'R', cpu: limit, call: none}, computing},
		{"in a call, and before that on a CPU for longer than the limit", glance{state: 'S', cpu: limit, call: 0}, inSystemCall},
		{"ready", glance{state: 'R', cpu: limit - 1, call: none}, waitsForCPU},
		{"was ready for half of the time", glance{state: 'S', waited: passed / 2, call: unix.SYS_READ}, waitsForCPU},
		{"in a call", glance{state: 'S', cpu: passed / 3, call: unix.SYS_READ}, inSystemCall},
		{"a disk", glance{state: 'D', call: unix.SYS_FSYNC}, inSystemCall},
		{"a page", glance{state: 'D', call: fault}, inSystemCall},
		{"a debugger", glance{state: 't', call: none}, stopped},
		{"the kernel says too little", glance{state: 'S', call: none}, unknown},
		{"the kernel says nothing", glance{call: none}, unknown},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.now.cpu += before.cpu
			row.now.waited += before.waited
			cause, _ := judge(before, row.now, passed, limit)
			require.Equal(t, row.want, cause)
		})
	}
}
