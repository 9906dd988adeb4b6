package lane_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/lane"
)

func TestALongWriteLendsAndWaits(t *testing.T) {
	bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
		_, _ = l.Write([]byte("before"))
		data := full(20)
		wrote := call(l.Write, data)
		waits(t, wrote)
		require.Equal(t, "before", string(l.Front()))
		l.Discard(len("before"))
		require.Same(t, &data[0], &l.Front()[0], "there is no copy")
		require.Len(t, l.Front(), len(data))
		l.Discard(0) // nothing could be sent in this turn
		for _, n := range []int{1, 100_000, len(data) - 100_002} {
			require.NotEmpty(t, l.Front())
			l.Discard(n)
			waits(t, wrote)
		}
		require.Equal(t, data[len(data)-1:], l.Front())
		l.Discard(1)
		require.Equal(t, result{len(data), nil}, <-wrote)
		require.Nil(t, l.Front())
		n, err := l.Write([]byte("behind"))
		require.Equal(t, result{6, nil}, result{n, err})
		require.Equal(t, "behind", string(l.Front()))
	})
}

func TestAWriteIsWokenAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
		var end []func()
		l.AtEnd = func(f func()) { end = append(end, f) }
		wrote := call(l.Write, full(2))
		synctest.Wait()
		for _, n := range []int{1, len(full(2)) - 1} {
			require.Empty(t, end)
			require.NotEmpty(t, l.Front())
			l.Discard(n)
			waits(t, wrote)
		}
		require.Nil(t, l.Front())
		require.Len(t, end, 1)
		end[0]()
		require.Equal(t, result{len(full(2)), nil}, <-wrote)
	})
}

// fills returns a function for Fill that has so many bytes.
func fills(n int, err error) func(p []byte) (int, error) {
	return func(p []byte) (int, error) { return copy(p, full(20)[:n]), err }
}

func TestFillReceivesIntoTheMemoryOfALane(t *testing.T) {
	bubble(t, func(t *testing.T, _ *lane.Lane, over chan struct{}) {
		l := lane.To(over, &act.AtomicWaker{})
		for _, n := range []int{lane.Long, 10} {
			k, err := l.Fill(fills(n, nil))
			require.Equal(t, result{n, nil}, result{k, err})
		}
		require.True(t, l.Full())
		require.PanicsWithValue(t, "lane: Fill without room", func() { _, _ = l.Fill(fills(1, nil)) })
		p := make([]byte, lane.Long+10)
		_, err := io.ReadFull(l, p)
		require.NoError(t, err)
		require.True(t, bytes.Equal(append(full(4), full(1)[:10]...), p))

		k, err := l.Fill(fills(0, errOurs))
		require.Equal(t, result{0, errOurs}, result{k, err})
		read := call(l.Read, p)
		waits(t, read)
		k, err = l.Fill(fills(lane.ChunkSize+1, errOurs)) // both are there
		require.Equal(t, result{lane.ChunkSize + 1, errOurs}, result{k, err})
		require.Equal(t, result{lane.ChunkSize + 1, nil}, <-read)
	})
}

func TestUseTakesAsManyBytesAsItSays(t *testing.T) {
	bubble(t, func(t *testing.T, _ *lane.Lane, over chan struct{}) {
		l := lane.To(over, &act.AtomicWaker{})
		var seen []string
		use := func([]byte) (int, error) {
			return 0, l.Use(func(p []byte) int {
				seen = append(seen, string(p))
				return len(p) - len(p)/2
			})
		}
		waiting := call(use, nil)
		waits(t, waiting)
		l.Put([]byte("abc"))
		require.NoError(t, (<-waiting).err)
		_, _ = use(nil)
		l.End(errOurs)
		_, err := use(nil)
		require.Equal(t, errOurs, err)
		close(over)
		_, err = use(nil)
		require.Equal(t, lane.ErrOver, err)
		require.Equal(t, []string{"abc", "c"}, seen)
	})
}

// causes are those for which a Write returns early.
var causes = map[string]struct {
	end  func(l *lane.Lane, over chan struct{})
	want error
}{
	"a deadline":         {func(l *lane.Lane, _ chan struct{}) { l.SetDeadline(time.Now()) }, os.ErrDeadlineExceeded},
	"the lane has ended": {func(l *lane.Lane, _ chan struct{}) { l.End(errOurs) }, errOurs},
	"it is over":         {func(_ *lane.Lane, over chan struct{}) { close(over) }, lane.ErrOver},
}

func TestALoanIsTakenBack(t *testing.T) {
	for name, cause := range causes {
		for _, taken := range []int{-1, 0, 5} { // -1: the task has not seen it
			bubble(t, func(t *testing.T, l *lane.Lane, over chan struct{}) {
				wrote := call(l.Write, full(20))
				waits(t, wrote)
				if taken >= 0 {
					l.Front()
					l.Discard(taken)
				}
				cause.end(l, over)
				require.Equal(t, result{max(0, taken), cause.want}, <-wrote, name)
				require.Nil(t, l.Front(), name)
				l.Discard(0)
			})
		}
	}
}

// The bytes are not touched after Write has returned. So a Write whose deadline passes in the middle of a turn waits.
func TestALoanIsNotTakenOutOfATurn(t *testing.T) {
	for name, cause := range causes {
		for _, taken := range []int{0, 5, len(full(20))} {
			bubble(t, func(t *testing.T, l *lane.Lane, over chan struct{}) {
				wrote := call(l.Write, full(20))
				waits(t, wrote)
				require.NotNil(t, l.Front())
				if name == "the lane has ended" { // that comes from the task itself, even when its turn panics
					l.End(errOurs)
					require.Equal(t, result{0, errOurs}, <-wrote)
					return
				}
				cause.end(l, over)
				waits(t, wrote)
				require.NotNil(t, l.Front(), "it is still lent")
				l.Discard(taken)
				require.Equal(t, result{taken, cause.want}, <-wrote, name)
				require.Nil(t, l.Front(), name)
			})
		}
	}
}

func TestFinishBehindALoanThatWasTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
		l.SetDeadline(time.Now().Add(time.Second))
		_, err := l.Write(full(20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.False(t, l.Finished())
		require.NoError(t, l.Finish())
		require.True(t, l.Finished(), "also if the task has not looked at the loan")
	})
}

// An alarm of a deadline that was moved meanwhile is none.
func TestALoanOutlivesADeadlineThatIsMoved(t *testing.T) {
	bubble(t, func(t *testing.T, l *lane.Lane, _ chan struct{}) {
		l.SetDeadline(time.Now().Add(time.Second))
		l.SetDeadline(time.Now())
		synctest.Wait() // the alarm rings
		l.SetDeadline(time.Now().Add(time.Hour))
		wrote := call(l.Write, full(20))
		waits(t, wrote)
		l.Discard(len(l.Front()))
		require.Equal(t, result{len(full(20)), nil}, <-wrote)
	})
}

// A goroutine lends, and changes its bytes as soon as Write has returned, often because of a deadline in the middle of a
// turn. The task finds each byte as it was written, and as many as Write says.
func TestLoansAndDeadlinesAtTheSameTime(t *testing.T) {
	l := lane.From(nil, &act.AtomicWaker{})
	r := rand.New(rand.NewPCG(1, 2))
	type sent struct {
		seed byte
		n    int
	}
	wrote := make(chan sent, 1000)
	go func() {
		defer close(wrote)
		p := make([]byte, 2*lane.Long)
		for i := range 50 {
			seed := byte(i)
			fill(p, seed)
			l.SetDeadline(time.Now().Add(time.Duration(r.IntN(50)) * time.Microsecond))
			n, _ := l.Write(p[:lane.ChunkSize-10+r.IntN(lane.Long)])
			fill(p, 0xDB)
			wrote <- sent{seed, n}
		}
		l.SetDeadline(time.Time{})
		_ = l.Finish()
	}()
	var got []byte
	for !l.Finished() {
		p := l.Front()
		if p == nil {
			runtime.Gosched()
			continue
		}
		n := min(len(p), 1+len(got)%(lane.Long/2))
		got = append(got, p[:n]...)
		if n%3 == 0 {
			runtime.Gosched() // so that a deadline passes in the turn
		}
		l.Discard(n)
	}
	want := make([]byte, 2*lane.Long)
	for s := range wrote {
		fill(want, s.seed)
		require.LessOrEqual(t, s.n, len(got))
		require.True(t, bytes.Equal(want[:s.n], got[:s.n]))
		got = got[s.n:]
	}
	require.Empty(t, got)
}

func fill(p []byte, seed byte) { copy(p, bytes.Repeat([]byte{seed}, len(p))) }
