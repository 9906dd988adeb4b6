package listener_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// reader is a task that waits for input, as often as it is woken for nothing.
func reader(l *servertest.Stepped, c *listener.Conn) *outcome {
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		_, err := c.Peek(1)
		return listener.Next(t, err)
	}))
	return o.begun(l)
}

// writer is a task that waits for room.
func writer(l *servertest.Stepped, c *listener.Conn) *outcome {
	part := make([]byte, 100<<10)
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		for {
			if _, err := c.Write(part); err != nil {
				return listener.Next(t, err)
			}
		}
	}))
	l.Until("it is blocked", func() bool { return o.directive == act.Wait })
	return o
}

func TestDeadlines(t *testing.T) {
	const sec = time.Second
	for name, row := range map[string]struct {
		script                   func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration))
		reader, writer           bool // fail
		readerTurns, writerTurns int  // at most: a deadline of the one is a turn of the other, no more
	}{
		"none": {script: func(_ *listener.Conn, _ func(time.Duration) time.Time, pass func(time.Duration)) { pass(1000 * sec) },
			readerTurns: 1, writerTurns: 1},
		"both": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(at(2 * sec))
			pass(2*sec - 1)
			pass(1)
		}, reader: true, writer: true, readerTurns: 2, writerTurns: 2},
		"not yet": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(at(2 * sec))
			pass(2*sec - 1)
		}, readerTurns: 1, writerTurns: 1},
		"read": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetReadDeadline(at(2 * sec))
			pass(2 * sec)
		}, reader: true, readerTurns: 2, writerTurns: 2},
		"write": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetWriteDeadline(at(2 * sec))
			pass(2 * sec)
		}, writer: true, readerTurns: 2, writerTurns: 2},
		"read, then write": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetReadDeadline(at(2 * sec))
			_ = c.SetWriteDeadline(at(3 * sec))
			pass(2 * sec)
			pass(sec)
		}, reader: true, writer: true, readerTurns: 2, writerTurns: 3},
		"in the past": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(at(-sec))
			pass(0)
		}, reader: true, writer: true, readerTurns: 2, writerTurns: 2},
		"long ago": {script: func(c *listener.Conn, _ func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(time.Unix(1, 0))
			pass(0)
		}, reader: true, writer: true, readerTurns: 2, writerTurns: 2},
		// What was broken: the sum overflowed and the deadline was over at once.
		"in a thousand years": {script: func(c *listener.Conn, _ func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(time.Date(3026, 1, 1, 0, 0, 0, 0, time.UTC))
			pass(1000 * sec)
		}, readerTurns: 1, writerTurns: 1},
		"cleared": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(at(2 * sec))
			pass(sec)
			_ = c.SetDeadline(time.Time{})
			pass(1000 * sec)
		}, readerTurns: 1, writerTurns: 1},
		"moved away again and again": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			for range 50 {
				_ = c.SetDeadline(at(2 * sec))
				pass(sec)
			}
		}, readerTurns: 1, writerTurns: 1},
		"moved away and then over": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			for range 50 {
				_ = c.SetDeadline(at(2 * sec))
				pass(sec)
			}
			pass(sec)
		}, reader: true, writer: true, readerTurns: 2, writerTurns: 2},
		"moved nearer": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(at(1000 * sec))
			pass(sec)
			_ = c.SetDeadline(at(sec))
			pass(sec)
		}, reader: true, writer: true, readerTurns: 2, writerTurns: 2},
		"moved into the past": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetReadDeadline(at(1000 * sec))
			pass(sec)
			_ = c.SetReadDeadline(at(-sec))
			pass(0)
		}, reader: true, readerTurns: 2, writerTurns: 2},
		"one cleared, one over": {script: func(c *listener.Conn, at func(time.Duration) time.Time, pass func(time.Duration)) {
			_ = c.SetDeadline(at(2 * sec))
			_ = c.SetReadDeadline(time.Time{})
			pass(2 * sec)
		}, writer: true, readerTurns: 2, writerTurns: 2},
	} {
		t.Run(name, func(t *testing.T) {
			l, clock := virtual(t)
			c, _ := l.Conn("unix", listener.Limits{})
			defer c.Abort()
			// Both wait before a deadline is set. What was broken: it did not wake them.
			r, w := reader(l, c), writer(l, c)
			base := w.turns - 1
			row.script(c, func(d time.Duration) time.Time { return clock.Wall().Add(d) },
				func(d time.Duration) { pass(l, clock, d) })
			require.Equal(t, row.reader, r.directive == act.Failed, "the reader has failed")
			require.Equal(t, row.writer, w.directive == act.Failed, "the writer has failed")
			for _, o := range []*outcome{r, w} {
				if o.err != nil {
					require.ErrorIs(t, o.err, os.ErrDeadlineExceeded)
				}
			}
			l.Turn(func(*act.Task) { // and the same for a task that has not waited
				_, err := c.Peek(1)
				require.Equal(t, row.reader, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
				_, err = c.Write([]byte("x"))
				require.Equal(t, row.writer, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
			})
			require.LessOrEqual(t, r.turns, row.readerTurns, "turns of the reader")
			require.LessOrEqual(t, w.turns-base, row.writerTurns, "turns of the writer")
		})
	}
}

func TestADeadlineLeavesWhatIsUnread(t *testing.T) {
	l, clock := virtual(t)
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "unread")
	readable(l, c, 6)
	servertest.Send(t, peer, "not received")
	require.NoError(t, c.SetReadDeadline(clock.Wall()))
	l.For(time.Millisecond)
	l.Turn(func(*act.Task) {
		in, err := c.Peek(1)
		require.NoError(t, err)
		require.Equal(t, "unread", string(in))
		in, err = c.Peek(7)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, "unread", string(in), "they come with the error too")
		_, err = c.WriteString("writing goes on")
		require.NoError(t, err)
	})
	servertest.Expect(t, peer, "writing goes on")
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	readable(l, c, 18)
}

func TestADeadlineOfAClosedConnectionIsForgotten(t *testing.T) {
	l, clock := virtual(t)
	c, _ := l.Conn("tcp", listener.Limits{})
	require.NoError(t, c.SetDeadline(clock.Wall().Add(time.Second)))
	_, armed := l.S.NextDeadline()
	require.True(t, armed)
	c.Abort()
	_, armed = l.S.NextDeadline()
	require.False(t, armed)
}

// One timer, however often the deadline moves: a server moves it with every request.
func TestMovingADeadlineAwayDoesNotTouchTheTimer(t *testing.T) {
	l, clock := virtual(t)
	c, _ := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	first := clock.Wall().Add(time.Second)
	require.NoError(t, c.SetDeadline(first))
	armed, _ := l.S.NextDeadline()
	for i := range 100 {
		require.NoError(t, c.SetReadDeadline(first.Add(time.Duration(i)*time.Hour)))
		require.NoError(t, c.SetWriteDeadline(first.Add(time.Duration(i)*time.Hour)))
		when, _ := l.S.NextDeadline()
		require.Equal(t, armed, when)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = c.SetDeadline(first.Add(time.Hour)) }))
}

// Each deadline is reported, even one that is no later than another that was reported before.
func TestADeadlineIsReportedAfterAnEarlierOne(t *testing.T) {
	l, clock := virtual(t)
	c, _ := l.Conn("unix", listener.Limits{})
	defer c.Abort()
	told := 0
	spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		_, err := c.Peek(1)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			told++
			_ = c.SetReadDeadline(time.Time{})
			_, err = c.Peek(1)
		}
		return listener.Next(t, err)
	})).begun(l)
	require.NoError(t, c.SetWriteDeadline(clock.Wall().Add(time.Hour))) // so that there is something to remember
	for n := 1; n <= 3; n++ {                                           // and no time passes
		require.NoError(t, c.SetReadDeadline(clock.Wall().Add(-time.Second)))
		l.Until("the deadline is reported", func() bool { return told == n })
	}
	l.For(time.Millisecond)
	require.Equal(t, 3, told)
}
