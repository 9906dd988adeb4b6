package shutdown

import (
	"fmt"
	"strings"
	"time"
)

// Drain is how an end is going on, of all schedulers of a Group together.
type Drain struct {
	Phase string        // how far it has come: "announced", "spreading" or "finishing", see [Policy]
	For   time.Duration // since the order was obeyed, or announced
	Bound time.Duration // until the rest is cut; 0: no such bound
	Ended int           // tasks that have ended since the report before, or since the order
	// Cut is what would be left if the end came now. What is to end last of all is not in it.
	Cut Cut
	// Silent are the schedulers that have not answered in time, by their Index, as when a turn does not end. Their part of the
	// report is the one before, or is missing.
	Silent []int
}

// String is one line without an end.
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
