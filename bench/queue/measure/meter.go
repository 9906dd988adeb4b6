package measure

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Ask is the line by which a worker asks on standard output for the CPU time of PostgreSQL, in ns. It gets the answer as a
// line of standard input.
const Ask = "cpu?"

// Moment is a reading of the clocks.
type Moment struct {
	at            time.Time
	own, database time.Duration
}

// Now reads the clocks of this process and of PostgreSQL.
func Now() (m Moment, err error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return m, fmt.Errorf("clock_gettime: %w", err)
	}
	m.own = time.Duration(t.Nano())
	fmt.Println(Ask)
	if _, err := fmt.Fscanln(os.Stdin, (*int64)(&m.database)); err != nil {
		return m, fmt.Errorf("the CPU time of PostgreSQL: %w", err)
	}
	m.at = time.Now()
	return m, nil
}

// Since returns what each of n tasks took from before until m.
func (m Moment) Since(before Moment, n int) Figures {
	each := func(d time.Duration) float64 { return float64(d) / float64(n) }
	return Figures{
		Wall:     each(m.at.Sub(before.at)),
		Own:      each(m.own - before.own),
		Database: each(m.database - before.database),
	}
}

// Clock is the time on a clock that all processes of the machine share, in ns.
func Clock() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("CLOCK_MONOTONIC: %v", err)) // every Linux has it
	}
	return t.Nano()
}
