//go:build unix

package monitor_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// pipe is a pipe of which both ends may be watched. What is closed in the test is -1.
type pipe struct {
	*servertest.Stepped
	reading, writing int
}

func newPipe(t *testing.T) *pipe {
	p := &pipe{Stepped: servertest.New(t, act.Config{})}
	p.Engine()
	p.reading, p.writing = openPipe(t)
	t.Cleanup(func() {
		for _, fd := range []int{p.reading, p.writing} {
			if fd >= 0 {
				require.NoError(t, syscall.Close(fd))
			}
		}
	})
	return p
}

func openPipe(t *testing.T) (reading, writing int) {
	var fds [2]int
	require.NoError(t, syscall.Pipe(fds[:]))
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		require.NoError(t, syscall.SetNonblock(fd, true))
	}
	return fds[0], fds[1]
}

func (p *pipe) watch(fd int, want netpoll.Ready) *monitor.Watched {
	p.T.Helper()
	w, err := monitor.Watch(p.S, fd, want)
	require.NoError(p.T, err)
	return w
}

func (p *pipe) write(text string) {
	p.T.Helper()
	n, err := syscall.Write(p.writing, []byte(text))
	require.NoError(p.T, err)
	require.Equal(p.T, len(text), n)
}

// waiting is a task that waits for a report.
type waiting struct {
	leaf  listener.Ready
	ended act.Directive // Done or Failed
	err   error
}

func (w *waiting) Act(t *act.Task) act.Directive {
	switch d := w.leaf.Act(t); d {
	case act.Done, act.Failed:
		w.ended, w.err = d, t.Err()
		return act.Done
	default:
		return d
	}
}

func (p *pipe) await(leaf listener.Ready) *waiting {
	w := &waiting{leaf: leaf}
	p.S.Spawn(w)
	p.For(0)
	return w
}

func (w *waiting) reported() bool { return w.ended == act.Done }

func TestAWatchedPipeReportsInputAndRoom(t *testing.T) {
	p := newPipe(t)
	in, out := p.watch(p.reading, netpoll.In), p.watch(p.writing, netpoll.Out)
	require.Panics(t, func() { _ = in.Writable() }, "nobody would wake the task")
	require.Panics(t, func() { _ = out.Readable() })
	o := p.await(listener.Ready{Of: in})
	require.False(t, o.reported())
	p.write("x")
	p.Until("input", func() bool { return o.reported() })
	require.Implements(t, (*act.Blocked)(nil), in.Readable(), "it was taken")

	require.NoError(t, out.Writable(), "there is room from the beginning")
	block := make([]byte, 1<<16)
	for err := error(nil); err == nil; _, err = syscall.Write(p.writing, block) {
	}
	o = p.await(listener.Ready{Of: out, Output: true})
	require.False(t, o.reported())
	for err := error(nil); err == nil; _, err = syscall.Read(p.reading, block) {
	}
	p.Until("room", func() bool { return o.reported() })
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
}

// One task waits for input and one for room, and each says which.
func TestAWaitingTaskSaysForWhichSideItWaits(t *testing.T) {
	l := servertest.New(t, act.Config{})
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(syscall.Close(fds[0]), syscall.Close(fds[1]))) }()
	w, err := monitor.Watch(l.S, fds[0], netpoll.In|netpoll.Out)
	require.NoError(t, err)
	l.Until("there is room", func() bool { return w.Writable() == nil })
	input, room := &listener.Ready{Of: w}, &listener.Ready{Of: w, Output: true}
	l.S.Spawn(input)
	l.S.Spawn(room)
	l.For(0)
	for text, part := range map[string][]any{
		"input from descriptor %d": {input, w.Readable()}, "room in descriptor %d": {room, w.Writable()},
	} {
		for _, x := range part {
			var said act.Description
			require.True(t, said.Of(x), "%T", x)
			require.Equal(t, []string{fmt.Sprintf(text, fds[0])}, said.Internals().Waits.All(), "%T", x)
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, l.S.Run())
	ends := l.Logs.FilterMessage("a task failed").All()
	require.Len(t, ends, 2)
	require.Equal(t, fmt.Sprintf("monitor: the watch of descriptor %d was closed", fds[0]), ends[0].ContextMap()["error"])
}

func TestTheEndOfAPipeIsInput(t *testing.T) {
	p := newPipe(t)
	w := p.watch(p.reading, netpoll.In)
	o := p.await(listener.Ready{Of: w})
	require.NoError(t, syscall.Close(p.writing))
	p.writing = -1
	p.Until("the end", func() bool { return o.reported() })
	n, err := syscall.Read(p.reading, make([]byte, 1))
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, w.Close())
}

func TestWhatCannotBeWatched(t *testing.T) {
	p := newPipe(t)
	w := p.watch(p.reading, netpoll.In)
	_, err := monitor.Watch(p.S, p.reading, netpoll.In)
	require.ErrorIs(t, err, syscall.EEXIST)
	require.ErrorContains(t, err, " is watched already: ")
	_, err = monitor.Watch(p.S, -1, netpoll.In)
	require.ErrorIs(t, err, syscall.EBADF)
	require.PanicsWithValue(t, "monitor: Watch is for netpoll.In, netpoll.Out, or both", func() {
		_, _ = monitor.Watch(p.S, p.reading, netpoll.Error)
	})
	require.NoError(t, w.Close())
	w = p.watch(p.reading, netpoll.In) // again, after the first has ended
	o := p.await(listener.Ready{Of: w})
	p.write("x")
	p.Until("input", o.reported)
	require.NoError(t, w.Close())
}

func TestAClosedWatchWakesItsTaskAndReportsNoMore(t *testing.T) {
	p := newPipe(t)
	w := p.watch(p.reading, netpoll.In)
	o := p.await(listener.Ready{Of: w})
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "again")
	p.write("x")
	p.Until("its end", func() bool { return o.ended != 0 })
	require.ErrorIs(t, o.err, os.ErrClosed)
	require.ErrorIs(t, w.Readable(), os.ErrClosed)
	n, err := syscall.Read(p.reading, make([]byte, 10))
	require.NoError(t, err, "the descriptor is open")
	require.Equal(t, 1, n)
}

// The number of a descriptor that is closed while it is watched is soon that of another one, which the end of the watch must leave
// alone.
func TestADescriptorThatIsClosedWhileItIsWatched(t *testing.T) {
	p := newPipe(t)
	w := p.watch(p.reading, netpoll.In)
	o := p.await(listener.Ready{Of: w})
	require.NoError(t, syscall.Close(p.reading))
	other, writing := openPipe(t)
	require.Equal(t, p.reading, other, "the system gives the number again")
	defer func() { require.NoError(t, syscall.Close(writing)) }()
	again := p.watch(other, netpoll.In)
	p.Until("woken", func() bool { return o.ended == act.Failed })
	require.ErrorContains(t, o.err, " was closed while it was watched")
	require.ErrorContains(t, w.Close(), " was closed while it was watched")
	o = p.await(listener.Ready{Of: again})
	_, err := syscall.Write(writing, []byte("x"))
	require.NoError(t, err)
	p.Until("input of the other", func() bool { return o.reported() })

	require.NoError(t, syscall.Close(p.reading))
	require.ErrorContains(t, again.Close(), " was closed while it was watched: ")
	p.reading = -1
}

func TestTheEndOfASchedulerEndsItsWatches(t *testing.T) {
	p := newPipe(t)
	w := p.watch(p.reading, netpoll.In)
	require.NoError(t, p.S.Run(), "a watch does not keep it")
	require.NoError(t, p.S.Close())
	require.NoError(t, w.Close())
	p.write("x") // both ends are open
}
