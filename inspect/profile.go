package inspect

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/internal/pool"
)

// kindLabel is the key of the label that says of what kind the action is whose turn it is, while a CPU profile is taken.
const kindLabel = "kind"

// profiling is set while turns are labelled.
var profiling atomic.Bool

func init() {
	pool.Unlabel = func() { pprof.SetGoroutineLabels(context.Background()) }
}

// labelTurns begins or ends to label turns, in all schedulers that are inspected, and their coroutines.
func labelTurns(on bool) { profiling.Store(on) }

// resumed gives a coroutine the labels of the present turn.
func (p *probe) resumed() {
	if p.labelled != nil && profiling.Load() {
		pprof.SetGoroutineLabels(p.labelled.labels)
	}
}

// label gives the scheduler's goroutine the label of a kind while turns are labelled. nil takes it away, and leaves that of the
// scheduler. It is called in a turn only while turns are labelled, or if the goroutine has such a label.
func (p *probe) label(k *kind) {
	if !profiling.Load() {
		k = nil
	}
	switch {
	case k == p.labelled, p.labels == nil:
		return
	case k == nil:
		pprof.SetGoroutineLabels(p.labels)
	default:
		if k.labels == nil {
			k.labels = pprof.WithLabels(p.labels, pprof.Labels(kindLabel, k.Name))
		}
		pprof.SetGoroutineLabels(k.labels)
	}
	p.labelled = k
}

const profileDefault, profileMost = 30, 120 // seconds

// profileList lists the profiles.
func profileList(q *request) error {
	fmt.Fprintf(q, `go tool pprof 'http://HOST/debug/pprof/NAME?token=TOKEN', where NAME is one of

profile  where the CPUs are used: turns have the label kind; ?seconds=%d for so many seconds
`, profileDefault)
	for _, p := range pprof.Profiles() {
		fmt.Fprintln(q, p.Name())
	}
	q.WriteString("\nAll but the first take ?debug=1 or 2 for a text, and heap takes ?gc=1 to collect garbage before.\n")
	return nil
}

// profile has a profile.
func profile(q *request) error {
	if q.name == "profile" {
		return q.profile()
	}
	known, level := pprof.Lookup(q.name), 0
	if debug := q.Get("debug"); debug != "" {
		var err error
		if level, err = strconv.Atoi(debug); err != nil {
			return refusal{400, "Debug has to be a number."}
		}
	}
	switch {
	case known == nil:
		return refusal{404, "There is no such profile."}
	case q.Get("seconds") != "":
		return refusal{400, "Only profile takes seconds."}
	case level != 0:
		q.kind = plainText
	}
	if q.name == "heap" && q.Get("gc") != "" {
		runtime.GC()
	}
	return known.WriteTo(q, level)
}

// profile takes a profile of the CPUs for as long as the request says, or until the client goes. The Go runtime takes one at a time.
func (q *request) profile() error {
	long, err := q.seconds(profileDefault, 1, profileMost)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(q); err != nil {
		return err
	}
	labelTurns(true)
	waitFor(long, q.gone)
	labelTurns(false)
	pprof.StopCPUProfile()
	return nil
}

// waitFor returns after a time, or when gone is closed.
func waitFor(d time.Duration, gone <-chan struct{}) {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-gone:
	}
}
