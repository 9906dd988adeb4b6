package inspect

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/facts"
)

// squeezed is the text of a Report with one space between two cells.
func squeezed(r, before *report) string {
	var out strings.Builder
	r.page(before).writeTo(&out)
	return regexp.MustCompile(` +`).ReplaceAllString(out.String(), " ")
}

// The text has what has happened since an earlier Report, and a dash for what is not known.
func TestTheTextHasRates(t *testing.T) {
	begun := time.Unix(1e9, 0)
	at := func(after time.Duration, busy time.Duration, n uint64) *report {
		s := &scheduler{
			State: "asleep", Uptime: time.Minute + after, Idle: idleTime{Asleep: time.Minute + after - busy},
			Counts:   map[string]uint64{"tasks": 3, "turns_total": 1000 + n, "received_bytes_total": 4 * n},
			Kinds:    []kindRow{{Name: "a", Alive: 3, Turns: 1000 + n, Woken: 500 + n/2}},
			Services: []facts.Service{{Name: "tcp", Accepted: n / 100}},
		}
		for range n / 64 {
			s.Turns.add(100 * time.Microsecond)
			s.Kinds[0].Took.add(100 * time.Microsecond)
		}
		return &report{Time: begun.Add(after), Schedulers: []*scheduler{s}}
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
