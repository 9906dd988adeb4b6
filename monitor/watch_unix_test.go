//go:build unix

package monitor_test

import (
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
	o := p.await(listener.Ready{Of: in})
	require.False(t, o.reported())
	var said act.Description
	o.leaf.Describe(&said)
	texts := said.Internals().Waits.All()
	require.Len(t, texts, 1)
	require.Contains(t, texts[0], "input from descriptor ")
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
	require.Equal(t, os.ErrClosed, o.err)
	require.Equal(t, os.ErrClosed, w.Readable())
	require.Equal(t, os.ErrClosed, w.Writable())
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
