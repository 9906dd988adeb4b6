package netpoll

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	children["first timer"] = firstTimerWhenFull
	children["first poller"] = firstPollerWhenFull
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fill takes all descriptors but so many.
func fill(but int) {
	var limit unix.Rlimit
	must(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	limit.Cur = 64
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	var all []int
	for {
		fd, err := unix.Dup(0)
		if err == unix.EMFILE {
			break
		}
		must(err)
		all = append(all, fd)
	}
	for _, fd := range all[:but] {
		must(unix.Close(fd))
	}
}

// firstTimerWhenFull is a server that has accepted up to the limit when the runtime has its first timer.
func firstTimerWhenFull() {
	_, err := sys.OpenPoller()
	must(err)
	fill(0)
	time.Sleep(time.Millisecond)
	fmt.Print("alive")
}

func TestOpenPollerOpensTheRuntimesPoller(t *testing.T) {
	require.Equal(t, "alive", asChild(t, "first timer"))
}

// firstPollerWhenFull begins when there are too few for both pollers.
func firstPollerWhenFull() {
	fill(3)
	for range 3 { // none leaks
		_, err := sys.OpenPoller()
		fmt.Print(err, "; ")
	}
	must(unix.Close(63))
	_, err := sys.OpenPoller()
	fmt.Print(err)
}

func TestOpenPollerWithTooFewDescriptorsFails(t *testing.T) {
	require.Equal(t, "too many open files; too many open files; too many open files; <nil>", asChild(t, "first poller"))
}
