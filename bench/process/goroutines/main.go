// Command goroutines does what command daimon does, with a goroutine and a channel for each process; it also has
// the bare threads that work is compared with.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/bench/process/measure"
)

func main() {
	measure.Main(map[string]func(*measure.Meter){
		"hand-off": handOff,
		"flood":    flood,
		"bounce":   bounce,
		"spawn":    spawn,
		"sleep":    sleep,
		"threads":  threads,
		"fan-in":   fanIn,
		"exchange": exchange,
		"light":    light,
	})
}

// handOff: two goroutines, two channels without a buffer.
func handOff(m *measure.Meter) {
	to, back := make(chan int), make(chan int)
	defer close(to)
	go func() {
		for x := range to {
			back <- x
		}
	}()
	for m.Lap(measure.Trips) {
		for x := range measure.Trips {
			to <- x
			<-back
		}
	}
}

func flood(m *measure.Meter) {
	box, done := make(chan int64, measure.Bound), make(chan bool)
	defer close(box)
	go func() {
		for got := 1; ; got++ {
			if _, ok := <-box; !ok {
				return
			}
			if got%measure.Flooded == 0 {
				done <- true
			}
		}
	}()
	for m.Lap(measure.Flooded) {
		for range measure.Flooded {
			box <- 0
		}
		<-done
	}
}

// bounce: each channel has room for all balls, so that no cycle of goroutines waits for room.
func bounce(m *measure.Meter) {
	all := make([]chan int, measure.Bouncers)
	for i := range all {
		all[i] = make(chan int, measure.Balls)
	}
	back := make(chan bool, measure.Balls)
	for i := range all {
		go func() {
			dice := measure.Dice(i + 1)
			for hops := range all[i] {
				if hops == 0 {
					back <- true
				} else {
					all[dice.Roll(len(all))] <- hops - 1
				}
			}
		}()
	}
	for m.Lap(measure.Balls * measure.Hops) {
		for i := range measure.Balls {
			all[i] <- measure.Hops - 1
		}
		for range measure.Balls {
			<-back
		}
	}
}

func spawn(m *measure.Meter) {
	for m.Lap(measure.Batches * measure.Batch) {
		for range measure.Batches {
			var ended sync.WaitGroup
			for range measure.Batch {
				ended.Add(1)
				go ended.Done()
			}
			ended.Wait()
		}
	}
}

func sleep(m *measure.Meter) {
	all := make([]chan int, m.Laps*measure.Sleepers)
	before := measure.Footprint()
	got := make(chan int)
	for i := range all {
		all[i] = make(chan int)
		go func() {
			for x := range all[i] {
				got <- x
			}
		}()
	}
	for i := range all {
		all[i] <- i
		<-got
	}
	m.Grown(before, len(all))
	runtime.KeepAlive(all)
}

// threads: as many threads as there would be schedulers take slices of work until none is left. That is the lower bound.
func threads(m *measure.Meter) {
	n := max(1, m.Reactors)
	var left atomic.Int64
	begin, done := make(chan bool), make(chan bool)
	defer close(begin)
	for range n {
		go func() {
			runtime.LockOSThread() // as schedulers are
			for range begin {
				for left.Add(-1) >= 0 {
					measure.Slice()
				}
				done <- true
			}
		}()
	}
	for m.Lap(measure.Workers * measure.Slices) {
		left.Store(int64(measure.Workers * measure.Slices))
		for range n {
			begin <- true
		}
		for range n {
			<-done
		}
	}
}

func fanIn(m *measure.Meter) {
	box := make(chan int, measure.Bound)
	all := make([]chan int, measure.Senders)
	for i := range all {
		all[i] = make(chan int, 1)
		go func() {
			for x := range all[i] {
				for range measure.Each {
					box <- x
				}
			}
		}()
	}
	for m.Lap(measure.Senders * measure.Each) {
		for _, to := range all {
			to <- 0
		}
		for range measure.Senders * measure.Each {
			<-box
		}
	}
}

func exchange(m *measure.Meter) {
	done := make(chan bool)
	all := make([]chan bool, measure.Pairs)
	for i := range all {
		all[i] = make(chan bool, 1)
		to, back := make(chan bool), make(chan bool)
		go func() {
			for x := range to {
				back <- x
			}
		}()
		go func() {
			for x := range all[i] {
				for range measure.Exchanges {
					to <- x
					<-back
				}
				done <- true
			}
		}()
	}
	for m.Lap(2 * measure.Pairs * measure.Exchanges) {
		for _, to := range all {
			to <- true
		}
		for range measure.Pairs {
			<-done
		}
	}
}

func light(m *measure.Meter) {
	all := make([]chan int, measure.Asked)
	for i := range all {
		all[i] = make(chan int, 1)
		go func() {
			for range all[i] {
			}
		}()
	}
	for m.Lap(measure.Requests) {
		for range measure.Requests {
			for _, to := range all {
				to <- 0
			}
			time.Sleep(measure.Gap)
		}
	}
}
