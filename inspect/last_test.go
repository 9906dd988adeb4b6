package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// said returns the lines of a scheduler's last events, without the heads of the columns and with one space between two.
func said(p *probe, now time.Duration) (lines []string) {
	var out bytes.Buffer
	p.writeLast(&out, p.lastEvents(), now)
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
		lines = append(lines, strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(line, " ")))
	}
	return lines
}

func TestTheLastEventsSayWhatHasHappened(t *testing.T) {
	s, _, c := inspected(t)
	p := probes.Get(s)
	var waker act.Waker
	var tm act.Timer
	naps := 1
	s.Spawn(act.Func(func(x *act.Task) act.Directive { // 2
		waker = x.Waker()
		return act.Wait
	}))
	for range 2 {
		s.Spawn(&turns{2, c}) // 3, 4
	}
	s.Spawn(act.Func(func(x *act.Task) act.Directive { return x.Fail(errors.New("no")) })) // 5
	s.Spawn(act.Func(func(*act.Task) act.Directive { panic("no") }))                       // 6
	s.Spawn(act.Func(func(x *act.Task) act.Directive {                                     // 7
		if naps--; naps < 0 {
			waker.Wake()
			s.Shutdown(shutdown.Policy{Kind: shutdown.Halt, Drop: true})
			return act.Done
		}
		x.WakeAfter(&tm, time.Minute)
		return act.Wait
	}))
	require.Error(t, s.Run(), "a task is cut")
	c.now += time.Second
	const kind = "github.com/daimon-go/daimon/inspect.TestTheLastEventsSayWhatHasHappened"
	var lines []string
	for _, line := range said(p, c.now) {
		lines = append(lines, strings.ReplaceAll(line, kind, ""))
	}
	require.Equal(t, []string{
		"1m1s spawned 1 *inspect.desk 1",
		"1m1s spawned 1 .func1 2",
		"1m1s spawned 2 *inspect.turns 3 4",
		"1m1s spawned 1 .func2 5",
		"1m1s spawned 1 .func3 6",
		"1m1s spawned 1 .func4 7",
		"1m1s turn 1 Wait .func1 2",
		"1m1s turn 2 Yield *inspect.turns 3 4",
		"1m1s turn 1 Failed .func2 5",
		"1m1s turn 1 panicked .func3 6",
		"1m1s turn 1 Wait .func4 7",
		"1m1s turn 2 Done *inspect.turns 3 4",
		"1m1s pass 1",
		"1m1s turn 1 Wait *inspect.desk 1",
		"1m1s asleep 1 for 1m0s",
		"1s pass 1",
		"1s woken 1 .func4 7",
		"1s turn 1 Done .func4 7",
		"1s woken 1 .func1 2",
		"1s told of a shutdown 1 *inspect.desk 1",
		"1s woken 1 *inspect.desk 1",
		"1s told of a shutdown 1 .func1 2",
		"1s dropped 1 .func1 2",
		"1s Run or Step returned 1",
	}, lines)
	r := reported(s)
	counts := map[string]uint64{"spawned_total": 7, "ended_total": 6, "failed_total": 2, "dropped_total": 1}
	for name, n := range counts {
		require.Equal(t, n, r.Counts[name], name)
	}
	k := kindNamed(t, r, "*inspect.turns")
	require.Equal(t, []uint64{0, 2, 4}, []uint64{uint64(k.Alive), k.Spawned, k.Turns})
}

// A turn that wakes or spawns very many tasks leaves what was before it.
func TestATurnLeavesTheEventsBeforeIt(t *testing.T) {
	w := newWatched("")
	for range 2 * ringSize {
		w.pass(time.Second)
	}
	const many = 3 * ringSize
	w.turn(one, 7, 12)
	for id := range uint32(many) {
		w.note(eventOf(woken, zero, id))
		require.Equal(t, sighting{seq: w.seq.Load(), kind: "one", id: 7, fd: 12}, w.sight())
	}
	w.directive(act.Wait)
	all := w.lastEvents()
	require.Greater(t, len(all), ringSize-10)
	lines := w.lines(all)
	require.Len(t, lines, 4)
	require.Equal(t, line{time.Second, passBegan, "", "", len(all) - within - 2, nil}, lines[0])
	require.Equal(t, line{time.Second, inTurn, "Wait", "one", 1, []uint32{7}}, lines[1])
	require.Equal(t, within, lines[2].n)
	require.Equal(t, many-within, lines[3].n)
	w.pass(2 * time.Second)
	require.Equal(t, line{2 * time.Second, passBegan, "", "", 1, nil}, w.lines(w.lastEvents())[4])
}

func TestEventsAreReadWhileTheyHappen(t *testing.T) {
	w := newWatched("")
	var enough atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		const ids = maxID - 1 // an even number, so that the kind of an id is the same when they begin anew
		for n := uint32(1); !enough.Load(); n++ {
			w.turn(zero+n%2, n%ids, -1)
			for range n % 5 {
				w.note(eventOf(woken, zero+n%2, n%ids))
			}
		}
	})
	defer writer.Wait()
	defer enough.Store(true)
	for read := 0; read < 50_000; {
		all := w.lastEvents()
		read += len(all) + 1
		for i, e := range all {
			require.Equal(t, zero+e.id()%2, e.kind())
			if i > 0 && all[i-1].id() < e.id() {
				require.EqualValues(t, 1, e.id()-all[i-1].id())
				require.Equal(t, inTurn, e.what())
			}
		}
	}
}

func TestKindsBeyondTheTableShareAName(t *testing.T) {
	w := &watched{}
	for i := range maxKind + 10 {
		require.EqualValues(t, (i+1)%(maxKind+1)*min(1, max(0, maxKind-i)), w.kindNumber(fmt.Sprint(i)))
	}
	require.Equal(t, "0", w.kindName(1))
	require.Equal(t, fmt.Sprint(maxKind-1), w.kindName(maxKind))
	require.Equal(t, "another kind", w.kindName(0))
}

func TestAnEventKeepsWhatItIsGiven(t *testing.T) {
	for _, fd := range []int32{-1, 0, 1, maxFD} {
		e := eventOf(inTurn, maxKind, maxID) | withFD(fd) | withDirective(act.Failed) | lapBit
		require.Equal(t, fd, e.fd())
		require.EqualValues(t, maxKind, e.kind())
		require.EqualValues(t, maxID, e.id())
		require.Equal(t, act.Failed, e.directive())
		require.Equal(t, inTurn, e.what())
	}
	require.EqualValues(t, -1, withFD(maxFD+1).fd())
	require.EqualValues(t, maxID, eventOf(inTurn, 0, 1<<32-1).id())
	year := 365 * 24 * time.Hour
	require.Equal(t, year, (timed(passBegan, year) | lapBit).time())
}
