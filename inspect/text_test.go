package inspect

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// squeezed is the text of a Report with one space between two cells.
func squeezed(r, before *Report) string {
	var out strings.Builder
	r.writeText(&out, before)
	return regexp.MustCompile(` +`).ReplaceAllString(out.String(), " ")
}

// The text has what has happened since an earlier Report, and a dash for what is not known.
func TestTheTextHasRates(t *testing.T) {
	begun := time.Unix(1e9, 0)
	at := func(after time.Duration, busy time.Duration, n uint64) *Report {
		s := &Scheduler{
			State: "asleep", Uptime: time.Minute + after, Idle: Idle{Asleep: time.Minute + after - busy},
			Counts:   map[string]uint64{"tasks": 3, "turns_total": 1000 + n, "received_bytes_total": 4 * n},
			Kinds:    []Kind{{Name: "a", Alive: 3, Turns: 1000 + n, Woken: 500 + n/2}},
			Services: []Service{{Name: "tcp", Accepted: n / 100}},
		}
		for range n / 64 {
			s.Turns.add(100 * time.Microsecond)
			s.Kinds[0].Took.add(100 * time.Microsecond)
		}
		return &Report{Time: begun.Add(after), Schedulers: []*Scheduler{s}}
	}
	text := squeezed(at(2*time.Second, time.Second, 640), at(0, 0, 0))
	require.Contains(t, text, "1 scheduler, 3 tasks; loads, rates (/s) and latencies of schedulers are of the last 2s\n")
	require.Contains(t, text, "\n0 3 0 320 50% 50% 0% 0% 100µs 100µs - - asleep\n")
	require.Contains(t, text, "\na 3 0 0 1640 320 820 160 100µs 100µs 100µs - - -\n")
	require.Contains(t, text, "\ntcp 0 0 6 3 0 ")
	require.Contains(t, text, "\nreceived_bytes_total 2560 1280 Bytes")
	require.Contains(t, text, "\ntasks 3 Tasks", "of this moment, so without a rate")

	text = squeezed(at(0, time.Minute, 6400), nil)
	require.Contains(t, text, "schedulers are of the time since the start\n")
	require.Contains(t, text, "\n0 3 0 123 100% 0% 0% 0% ")
	text = squeezed(at(time.Second, 0, 640), at(time.Second, 0, 640))
	require.Contains(t, text, "\n0 3 0 - - - - - - - - - asleep\n", "it did not answer meanwhile")
}

// Stalls that are not in the table, and times in which there may have been some, are not silent.
func TestTheTextSaysWhatTheWatchdogHasNotSeen(t *testing.T) {
	r := &Report{Schedulers: []*Scheduler{{}}}
	require.NotContains(t, squeezed(r, nil), "stall")
	r.Stalls = Stalls{Suppressed: 5, Late: 2, Latest: 10 * time.Second}
	require.Contains(t, squeezed(r, nil), "\n5 stalls more had no line, because there were too many\n"+
		"the watchdog was late 2 times, by up to 10s: stalls meanwhile are not seen\n")
}

// One request for the text is enough to see a task that has a turn all the time, and the rates of now.
func TestOneLookAtTheTextTellsWhatGoesOn(t *testing.T) {
	x, at := visited(t)
	x.places = 1
	spun := make(chan uint32, 1)
	for _, d := range x.desks {
		require.NoError(t, d.probe.s.Post(func(s *act.Scheduler) {
			s.Spawn(&spinner{spun: spun})
		}))
	}
	<-spun
	var body string
	require.Eventually(t, func() bool { // on a slow machine a turn may take long
		_, _, body = get(t, at+"/text?token=secret", func(*http.Request) {})
		return strings.Contains(body, "! 2 tasks of *inspect.spinner take up to ") || strings.Contains(body, "! 1 task of *inspect.spinner takes ")
	}, time.Minute, time.Millisecond)
	require.Regexp(t, `are of the last [1-9]`, body)

	_, _, body = get(t, at+"/json?token=secret", func(*http.Request) {})
	var r Report
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	require.Contains(t, strings.Join(r.Findings, "\n"), "*inspect.spinner", "as of the look at the tasks before")
	require.Empty(t, r.Schedulers[0].Tasks)
	for _, wrong := range []string{"-1", "61", "x"} {
		code, _, _ := get(t, at+"/text?token=secret&seconds="+wrong, func(*http.Request) {})
		require.Equal(t, 400, code)
	}
}

// spinner yields all the time.
type spinner struct{ spun chan uint32 }

func (x *spinner) Act(*act.Task) act.Directive {
	select {
	case x.spun <- 0:
	default:
	}
	return act.Yield
}
