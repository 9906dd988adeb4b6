package listener_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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

// TestDeadlines plays scripts: "read 2s" sets the deadline of Read to two seconds from now, "write" the one of Write
// and "both" both; "off" removes it, 3026 is a year, "pass" lets time pass, and "50 times" repeats the rest. A reader
// and a writer wait from before the first deadline on: once a deadline did not wake them.
func TestDeadlines(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		failed string // the tasks whose call has failed: "reader", "writer" or both
		turns  string // of the reader and the writer, at most: a deadline of the one is a turn of the other, no more
	}{
		"none":             {"pass 1000s", "", "1 1"},
		"both":             {"both 2s; pass 1.999s; pass 1ms", "reader writer", "2 2"},
		"not yet":          {"both 2s; pass 1.999s", "", "1 1"},
		"read":             {"read 2s; pass 2s", "reader", "2 2"},
		"write":            {"write 2s; pass 2s", "writer", "2 2"},
		"read, then write": {"read 2s; write 3s; pass 2s; pass 1s", "reader writer", "2 3"},
		"in the past":      {"both -1s; pass 0s", "reader writer", "2 2"},
		"long ago":         {"both -400000h; pass 0s", "reader writer", "2 2"},
		// What was broken: the sum overflowed and the deadline was over at once.
		"in a thousand years":        {"both 3026; pass 1000s", "", "1 1"},
		"cleared":                    {"both 2s; pass 1s; both off; pass 1000s", "", "1 1"},
		"moved away again and again": {"50 times both 2s; pass 1s", "", "1 1"},
		"moved away and then over":   {"50 times both 2s; pass 1s; end; pass 1s", "reader writer", "2 2"},
		"moved nearer":               {"both 1000s; pass 1s; both 1s; pass 1s", "reader writer", "2 2"},
		"moved into the past":        {"read 1000s; pass 1s; read -1s; pass 0s", "reader", "2 2"},
		"one cleared, one over":      {"both 2s; read off; pass 2s", "writer", "2 2"},
	} {
		t.Run(name, func(t *testing.T) {
			l, clock := virtual(t)
			c, _ := l.Conn("unix", listener.Limits{})
			defer c.Abort()
			r, w := reader(l, c), writer(l, c)
			base := w.turns - 1
			perform(t, l, c, clock, row.script)
			failed := map[string]bool{"reader": r.directive == act.Failed, "writer": w.directive == act.Failed}
			for who, o := range map[string]*outcome{"reader": r, "writer": w} {
				require.Equal(t, strings.Contains(row.failed, who), failed[who], "%s has failed", who)
				if o.err != nil {
					require.ErrorIs(t, o.err, os.ErrDeadlineExceeded)
				}
			}
			l.Turn(func(*act.Task) { // and the same for a task that has not waited
				_, err := c.Peek(1)
				require.Equal(t, failed["reader"], errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
				_, err = c.Write([]byte("x"))
				require.Equal(t, failed["writer"], errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
			})
			require.LessOrEqual(t, fmt.Sprint(r.turns, w.turns-base), row.turns)
		})
	}
}

// perform plays a script of TestDeadlines.
func perform(t *testing.T, l *servertest.Stepped, c *listener.Conn, clock *servertest.Clock, script string) {
	if many, ok := strings.CutPrefix(script, "50 times "); ok {
		again, rest, _ := strings.Cut(many, "; end; ")
		for range 50 {
			perform(t, l, c, clock, again)
		}
		script = rest
	}
	for step := range strings.SplitSeq(script, "; ") {
		what, text, _ := strings.Cut(step, " ")
		d, err := time.ParseDuration(text)
		at := clock.Wall().Add(d)
		switch text {
		case "off", "":
			at, err = time.Time{}, nil
		case "3026":
			at, err = time.Date(3026, 1, 1, 0, 0, 0, 0, time.UTC), nil
		}
		require.NoError(t, err)
		switch what {
		case "read":
			err = c.SetReadDeadline(at)
		case "write":
			err = c.SetWriteDeadline(at)
		case "both":
			err = c.SetDeadline(at)
		case "pass":
			pass(l, clock, d)
		}
		require.NoError(t, err)
	}
}

func TestADeadlineOfAClosedConnectionIsForgotten(t *testing.T) {
	l, clock := virtual(t)
	l.S.Internals().KeepRunning(1) // for a task
	defer l.S.Internals().KeepRunning(-1)
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
	l.For(0)
	require.Equal(t, 3, told)
}
