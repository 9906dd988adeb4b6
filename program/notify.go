//go:build linux

package program

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/shutdown"
)

// notifier tells a supervisor such as systemd how the program is doing, as sd_notify(3) describes it. It is a demon of the first
// scheduler. The protocol is one datagram for each message, a dozen lines here (send): go-systemd would have the same dozen, for
// one more dependency of every program.
type notifier struct {
	conn  *net.UnixConn
	log   *zap.Logger
	group *act.Group
	timer act.Timer

	watchdog time.Duration // half of the time after which the supervisor misses a sign of life; 0: it wants none
	answered []bool        // by scheduler: it has given a turn since the last sign of life
	fed      time.Duration // when that was; 0: there was none

	serving atomic.Bool    // from when it is ready until a shutdown is in force
	order   shutdown.Order // nil until a shutdown is in force
	told    bool           // the supervisor knows of order

	replaced atomic.Bool // another process is the main process, and the supervisor was told; never unset

	announced atomic.Bool     // the supervisor was told of a shutdown, which may still be withdrawn
	bell      act.AtomicWaker // wakes the demon when announced was set
	look      act.Timer       // for the next poll whether the end was withdrawn
}

// extension is for how long the supervisor is asked to wait, again and again.
const extension = 10 * time.Second

// newNotifier returns nil if there is no supervisor, or if it cannot be reached: the variable may be one of another container.
func newNotifier(log *zap.Logger) *notifier {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		log.Warn("there is no supervisor at NOTIFY_SOCKET, so the program tells it nothing", zap.Error(err))
		return nil
	}
	n := &notifier{conn: conn, log: log}
	if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 63); err == nil && usec > 0 {
			n.watchdog = time.Duration(usec) * time.Microsecond / 2
		}
	}
	return n
}

// setup is the last set-up function: the program is ready.
func (n *notifier) setup(s *act.Scheduler) error {
	schedulers := s.Group().Schedulers()
	if s.Index() < len(schedulers)-1 {
		return nil
	}
	n.group, n.answered = s.Group(), make([]bool, len(schedulers))
	// First, since a supervisor that knows may ask for a reload at once, and waits for the answer.
	n.serving.Store(true)
	n.send("READY=1\nMAINPID=%d\nSTATUS=serving", os.Getpid()) // a program that has replaced another one is the main process now
	schedulers[0].Attach(n)
	return nil
}

// Act sends the messages that are due.
func (n *notifier) Act(t *act.Task) act.Directive {
	now := max(1, t.Scheduler().Now())
	if n.watchdog > 0 && !n.replaced.Load() { // else it hid that the other process hangs
		if n.fed == 0 || now >= n.fed+n.watchdog && !slices.Contains(n.answered, false) {
			n.send("WATCHDOG=1")
			n.fed = now
			n.ask()
		}
		t.WakeAfter(&n.timer, n.watchdog/4)
	}
	if n.order != nil && !n.told {
		n.told = true
		n.ending("STOPPING=1\n", n.order, fmt.Sprint("ending: ", n.order.Policy()))
	}
	n.bell.Set(t.Waker())
	if n.order == nil && n.announced.Load() {
		if n.group.Order() != nil {
			t.WakeAfter(&n.look, time.Second)
		} else if n.announced.Swap(false) {
			n.send("STATUS=serving")
		}
	}
	return act.Wait
}

// ask has each scheduler say that it gives turns. A scheduler whose inbox is full does not.
func (n *notifier) ask() {
	home := n.group.Schedulers()[0]
	for i, s := range n.group.Schedulers() {
		n.answered[i] = false
		_ = s.Post(func(*act.Scheduler) { _ = home.Post(func(*act.Scheduler) { n.answered[i] = true }) })
	}
}

// Stop notes the shutdown request.
func (n *notifier) Stop(_ *act.Task, o shutdown.Order) {
	n.order = o
	n.serving.Store(false)
	n.giveWay(o)
}

// giveWay reports whether this program was replaced, and names the other process to the supervisor, once. The other one does so too,
// but a program without clients may have ended by then: the supervisor would take that for the end of the service.
func (n *notifier) giveWay(o shutdown.Order) bool {
	if r, ok := o.(handover.Replaced); ok && !n.replaced.Swap(true) {
		n.send("MAINPID=%d", r.PID)
	}
	return n.replaced.Load()
}

// reloading comes before all that SIGHUP does, and reloaded after it. Under a supervisor SIGHUP is always answered so, even if
// nothing is read again. A program that is ending, or was replaced, says neither. reloading says when the reload begins: systemd
// does not count what has begun before it sent the signal.
func (n *notifier) reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err == nil && n.serving.Load() {
		n.send("RELOADING=1\nMONOTONIC_USEC=%d\nSTATUS=reloading", now.Nano()/1000)
	}
}

// reloaded does not name the process: another one may be the main process by now.
func (n *notifier) reloaded() {
	if n.serving.Load() {
		n.send("READY=1\nSTATUS=serving")
	}
}

// drain passes on what the shutdown waits for. It is called once a second, on the thread of any scheduler.
func (n *notifier) drain(d shutdown.Drain) {
	if n != nil {
		n.ending("", d.Cut.Order, d.String())
		n.announced.Store(true)
		n.bell.Wake()
	}
}

// ending says that the program is ending. A program that was replaced says nothing, even if a signal comes later: the other one
// is the main process.
func (n *notifier) ending(first string, o shutdown.Order, status string) {
	if !n.giveWay(o) {
		n.send("%sEXTEND_TIMEOUT_USEC=%d\nSTATUS=%s", first, extension.Microseconds(), status)
	}
}

// send sends a message, and does not wait: the supervisor may be busy.
func (n *notifier) send(format string, args ...any) {
	raw, err := n.conn.SyscallConn()
	if err == nil {
		var sent error
		err = raw.Write(func(fd uintptr) bool {
			_, sent = syscall.Write(int(fd), fmt.Appendf(nil, format, args...))
			return true
		})
		if err == nil {
			err = sent
		}
	}
	if err != nil {
		n.log.Warn("the supervisor was not told", zap.Error(err))
	}
}

func (n *notifier) close() { _ = n.conn.Close() }

func (n *notifier) String() string { return "sd_notify" }
