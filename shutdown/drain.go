package shutdown

import (
	"fmt"
	"strings"
	"time"
)

// Drain is a report about a shutdown in progress, for all schedulers of a Group together. The function
// act.Config.Draining gets one each second.
type Drain struct {
	Phase string        // the phase that the shutdown is in: "announced", "spreading" or "finishing", see [Policy]
	For   time.Duration // how long the shutdown has taken so far, with its announcement
	Bound time.Duration // how much longer the shutdown may take at most; 0 means no bound
	Ended int           // how many tasks have ended since the previous report, or since the request
	// Cut is what would be left if Run returned now, without the services that end last of all.
	Cut Cut
	// Silent lists the schedulers that have not answered in time, by their Index, as when a turn does not end. The
	// report has their previous numbers, or none.
	Silent []int
}

// String returns the report in one line for a log, without a newline at its end.
func (d Drain) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ending for %v, %s", round(d.For), d.Phase)
	if d.Bound > 0 {
		fmt.Fprintf(&b, ", for %v more at most", round(d.Bound))
	}
	fmt.Fprintf(&b, ": %s", d.Cut.counts())
	writeCounts(&b, d.Cut.Kinds)
	fmt.Fprintf(&b, "; %s ended since the last report", plural(d.Ended, "task"))
	for _, i := range d.Silent {
		fmt.Fprintf(&b, "; scheduler %d does not answer", i)
	}
	if len(d.Cut.Left) > 0 {
		fmt.Fprintf(&b, "; the oldest: %v", d.Cut.Left[0])
	}
	return line(b.String())
}
