// Package measure has what the compared programs share: the flags, the figures, and work that is not part of the
// comparison.
package measure

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"golang.org/x/sys/unix"
)

// Figures are the results of one run of a program, for each operation: a message, a round trip, a process, or a slice of
// work, depending on the row.
type Figures struct {
	Wall    float64 // ns
	CPU     float64 // ns of all threads, user and system
	Allocs  float64 // objects on the heap
	Bytes   float64 // of the heap and of stacks, if the row measures them
	Crossed float64 // the share of messages that were received on another scheduler than they were sent on, if known
}

// Meter measures one run.
type Meter struct {
	Reactors int // the number of threads; 0: the default of the program
	Laps     int // after a first one, which only warms up

	lap     int
	begun   moment
	profile string
	figures Figures
}

// moment is a reading of the clocks.
type moment struct {
	wall    time.Time
	cpu     time.Duration
	objects uint64
}

// Main runs the row that the flags name, and prints its Figures.
func Main(rows map[string]func(*Meter)) {
	var m Meter
	row := flag.String("row", "", "the row to run")
	flag.IntVar(&m.Reactors, "reactors", 0, "the number of threads; 0: the default of the program")
	flag.IntVar(&m.Laps, "laps", 1, "the number of laps, after a first one that only warms up")
	scale := flag.Float64("scale", 1, "a factor for the work of a lap")
	flag.StringVar(&m.profile, "profile", "", "write a CPU profile to this `file`")
	flag.Parse()
	run := rows[*row]
	if run == nil {
		log.Fatalf("there is no row %q here", *row)
	}
	if m.Laps < 1 || *scale <= 0 {
		log.Fatal("numbers must be above 0")
	}
	resize(*scale)
	run(&m)
	if err := json.NewEncoder(os.Stdout).Encode(m.figures); err != nil {
		log.Fatal(err)
	}
}

// Lap is called when everything is ready, and after each lap, with the number of operations in it. It reports whether
// another lap follows.
func (m *Meter) Lap(operations int) (again bool) {
	m.lap++
	switch m.lap {
	case 2: // the first has warmed up
		m.begin()
	case m.Laps + 2:
		m.end(operations * m.Laps)
		return false
	}
	return true
}

func (m *Meter) begin() {
	if m.profile != "" {
		f, err := os.Create(m.profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	m.begun = moment{time.Now(), cpu(), heap.Mallocs}
}

func (m *Meter) end(operations int) {
	n := float64(operations)
	m.figures.CPU = float64(cpu()-m.begun.cpu) / n
	m.figures.Wall = float64(time.Since(m.begun.wall)) / n
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	m.figures.Allocs = float64(heap.Mallocs-m.begun.objects) / n
	if m.profile != "" {
		pprof.StopCPUProfile()
	}
}

// cpu is the kernel's exact clock of this process.
func cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		log.Fatal(fmt.Errorf("clock_gettime: %w", err))
	}
	return time.Duration(t.Nano())
}

// Cross notes how many of all messages came from another scheduler.
func (m *Meter) Cross(crossed, all int) { m.figures.Crossed = float64(crossed) / float64(all) }

// Footprint returns the bytes of the heap and the stacks, without garbage.
func Footprint() (bytes uint64) {
	runtime.GC()
	runtime.GC() // frees what the first has only finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// Grown notes by how much n of something have increased a Footprint.
func (m *Meter) Grown(before uint64, n int) {
	m.figures.Bytes = float64(Footprint()-before) / float64(n)
}

// Dice is a cheap source of random numbers, one for each user: xorshift.
type Dice uint32

// Roll returns a number below n.
func (d *Dice) Roll(n int) int {
	x := *d
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*d = x
	return int(uint64(x) * uint64(n) >> 32)
}

// Slice is work for a CPU, about 200 µs.
func Slice() {
	d := Dice(1)
	for range 100_000 {
		d.Roll(2)
	}
	if d == 0 {
		panic("never, but the compiler does not know")
	}
}
