package lane_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/lane"
)

var errOurs = errors.New("ours")

// result is what a call returned.
type result struct {
	n   int
	err error
}

// call makes a call on a goroutine of its own.
func call(f func(p []byte) (int, error), p []byte) <-chan result {
	c := make(chan result, 1)
	go func() {
		n, err := f(p)
		c <- result{n, err}
	}()
	return c
}

// waits requires that the call has not returned when nothing else runs.
func waits(t *testing.T, c <-chan result) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		require.FailNow(t, "it has not waited", "%v", r)
	default:
	}
}

// full returns the bytes of n chunks.
func full(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n*lane.ChunkSize/16) }

// cram writes as many chunks as a lane takes without a wait.
func cram(t *testing.T, l *lane.Lane) {
	t.Helper()
	for range lane.Chunks {
		n, err := l.Write(full(1))
		require.Equal(t, result{lane.ChunkSize, nil}, result{n, err})
	}
}

// bubble calls f where time passes when all goroutines wait.
func bubble(t *testing.T, f func(t *testing.T, l *lane.Lane, over chan struct{})) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		f(t, lane.From(over, &act.AtomicWaker{}), over)
	})
}

func TestALaneHoldsABoundedNumberOfChunks(t *testing.T) {
	bubble(t, func(t *testing.T, _ *lane.Lane, over chan struct{}) {
		const lent = 4 // chunks for which a connection lends bytes
		l := lane.To(over, &act.AtomicWaker{})
		require.Equal(t, lane.ChunkSize, l.Put(full(1)))
		require.False(t, l.Full())
		require.Equal(t, lent*lane.ChunkSize, l.Put(full(lent+1)))
		require.True(t, l.Full())
		require.PanicsWithValue(t, "lane: Put without room", func() { l.Put([]byte("x")) })
		require.Zero(t, l.Put(nil))
		_, err := io.ReadFull(l, make([]byte, (lent-1)*lane.ChunkSize+1))
		require.NoError(t, err)
		require.False(t, l.Full(), "one chunk is left, and the rest of one in the hands of the reader")

		out := lane.From(over, &act.AtomicWaker{})
		cram(t, out)
		wrote := call(out.Write, []byte("x"))
		waits(t, wrote)
		out.Front() // now it is in the hands of the task
		require.Equal(t, result{1, nil}, <-wrote)
	})
}

func TestEndComesBehindTheLastByte(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
			p := make([]byte, 10)
			l.Put([]byte("hello"))
			l.Put([]byte("world"))
			l.End(errOurs)
			l.End(io.EOF) // the first one counts
			for _, want := range []string{"hello", "world"} {
				n, err := l.Read(p)
				require.Equal(t, want, string(p[:n]))
				require.NoError(t, err)
			}
			for range 2 {
				_, err := l.Read(p)
				require.Equal(t, errOurs, err)
			}
		})
		bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
			read := call(l.Read, make([]byte, 1))
			if waiting {
				waits(t, read)
			}
			l.End(errOurs)
			require.Equal(t, result{0, errOurs}, <-read)
		})
		bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
			cram(t, l)
			wrote := call(l.Write, []byte("x"))
			waits(t, wrote)
			l.End(errOurs)
			require.Equal(t, result{0, errOurs}, <-wrote)
			_, err := l.Write(nil)
			require.Equal(t, errOurs, err)
			require.Equal(t, errOurs, l.Finish())
			require.Len(t, l.Front(), lane.ChunkSize, "what was written is there")
		})
	}
}

func TestNoCallSucceedsWhenALaneIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, l *lane.Lane, over chan struct{}) {
		out := lane.From(over, &act.AtomicWaker{})
		cram(t, out)
		read, wrote := call(l.Read, make([]byte, 1)), call(out.Write, []byte("x"))
		waits(t, read)
		waits(t, wrote)
		l.Put([]byte("hello")) // of which the reader takes one
		require.Equal(t, result{1, nil}, <-read)
		close(over)
		require.Equal(t, result{0, lane.ErrOver}, <-wrote)
		l.End(io.EOF)
		_, err := l.Read(make([]byte, 1))
		require.Equal(t, lane.ErrOver, err, "whatever is on its way")
		_, err = out.Write(nil)
		require.Equal(t, lane.ErrOver, err)
		require.Equal(t, lane.ErrOver, out.Finish())
	})
}

// A deadline that is set or moved while a call waits is the one of that call.
func TestDeadlinesOfACallThatWaits(t *testing.T) {
	for name, row := range map[string]struct {
		set  func(l *lane.Lane)
		want time.Duration
	}{
		"it has passed":        {func(l *lane.Lane) { l.SetDeadline(time.Now().Add(-time.Second)) }, 0},
		"it comes":             {func(l *lane.Lane) { l.SetDeadline(time.Now().Add(time.Minute)) }, time.Minute},
		"it is moved forward":  {func(l *lane.Lane) { set(l, time.Hour, time.Minute) }, time.Minute},
		"it is moved backward": {func(l *lane.Lane) { set(l, time.Second, time.Minute) }, time.Minute},
		"it is removed": {func(l *lane.Lane) {
			set(l, time.Minute)
			l.SetDeadline(time.Time{})
			time.AfterFunc(time.Hour, func() { l.SetDeadline(time.Now()) })
		}, time.Hour},
	} {
		for _, write := range []bool{false, true} {
			bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
				f, p := l.Read, make([]byte, 1)
				if write {
					f, p = l.Write, full(lane.Chunks+1)
				}
				begun := time.Now()
				waiting := call(f, p)
				waits(t, waiting)
				row.set(l)
				require.ErrorIs(t, (<-waiting).err, os.ErrDeadlineExceeded, name)
				require.Equal(t, row.want, time.Since(begun), name)
				n, err := f(p[:0])
				require.Equal(t, result{0, os.ErrDeadlineExceeded}, result{n, err}, name)
				l.SetDeadline(time.Time{})
				_, err = f(p[:0])
				require.NoError(t, err, name)
			})
		}
	}
}

func set(l *lane.Lane, deadlines ...time.Duration) {
	for _, d := range deadlines {
		l.SetDeadline(time.Now().Add(d))
	}
}

// looker is a task that notes what it finds in a lane.
type looker struct {
	lane  *lane.Lane
	bell  act.AtomicWaker
	turns int
	look  func(l *lane.Lane)
}

func (k *looker) Act(t *act.Task) act.Directive {
	k.turns++
	k.bell.Set(t.Waker())
	if k.look != nil {
		k.look(k.lane)
	}
	return act.Wait
}

// looking steps the task, of which each call of the function it returns is one run until it waits.
func looking(t *testing.T, demand bool) (k *looker, step func() *looker) {
	k = &looker{}
	k.lane = lane.From(nil, &k.bell)
	k.lane.Demand = demand
	s := act.New(act.Config{})
	s.Spawn(k)
	t.Cleanup(func() { _ = s.Close() })
	return k, func() *looker {
		synctest.Wait()
		k.turns = 0
		_, err := s.Step(64)
		require.NoError(t, err)
		return k
	}
}

// Bytes are wanted while a Read waits for them, and no longer, whatever ends it.
func TestAReadThatReturnsWantsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
		l.Demand = true
		read := call(l.Read, make([]byte, 3))
		waits(t, read)
		require.True(t, l.Wanted())
		l.Put([]byte("hello"))
		require.False(t, l.Wanted(), "something is on its way")
		require.Equal(t, result{3, nil}, <-read)
		require.False(t, l.Wanted())
		_, _ = l.Read(make([]byte, 3))
		require.False(t, l.Wanted(), "it has found something")
		l.SetDeadline(time.Now().Add(time.Second))
		_, err := l.Read(make([]byte, 3))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.False(t, l.Wanted())
	})
}

func TestRoomAndBytesWakeTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, step := looking(t, false)
		k.look = func(l *lane.Lane) {
			for !l.Full() {
				l.Put(full(1))
			}
		}
		require.True(t, step().lane.Full())
		p := make([]byte, lane.ChunkSize)
		for range 10 {
			_, err := io.ReadFull(k.lane, p)
			require.NoError(t, err)
			require.Zero(t, step().turns, "there is another chunk")
			_, err = io.ReadFull(k.lane, p)
			require.NoError(t, err)
			require.Equal(t, 1, step().turns)
			require.True(t, k.lane.Full(), "it was filled again")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		k, step := looking(t, false)
		step()
		for range 10 {
			_, _ = k.lane.Write([]byte("x"))
			require.Equal(t, 1, step().turns)
			k.lane.Discard(len(k.lane.Front()))
		}
		_ = k.lane.Finish()
		require.Equal(t, 1, step().turns)
	})
}

// Both sides are busy at once, and neither loses a byte.
func TestALaneBetweenBusySides(t *testing.T) {
	data := full(300)
	bell := &act.AtomicWaker{}
	in, out := lane.To(nil, bell), lane.From(nil, bell)
	in.Demand = true
	echoed := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, in)
		echoed <- errors.Join(err, out.Finish())
	}()
	var got []byte
	for rest := data; !out.Finished(); {
		if p := out.Front(); p != nil {
			got = append(got, p...)
			out.Discard(len(p))
		}
		switch {
		case len(rest) == 0:
			in.End(io.EOF)
			runtime.Gosched()
		case in.Full():
			runtime.Gosched()
		default:
			rest = rest[in.Put(rest[:min(len(rest), 1+len(rest)%lane.ChunkSize)]):]
		}
	}
	require.NoError(t, <-echoed)
	require.True(t, bytes.Equal(data, got))
}
