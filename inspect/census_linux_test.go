package inspect

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
)

// BenchmarkCensus asks about 100,000 tasks that wait, each of which says what for. Its metrics are the longest turn of the desk,
// for which all else has to wait, the longest by the CPU time of its thread, which other programs do not lengthen, and the sum of its
// turns; of the first question the longest turn is a metric of its own.
func BenchmarkCensus(b *testing.B) {
	const tasks = 100_000
	first, longest, longestCPU, all, census := time.Duration(0), time.Duration(0), time.Duration(0), time.Duration(0), 0
	for b.Loop() {
		x := &Inspector{}
		var begun, most, sum, cpuBegun, mostCPU time.Duration
		clock := time.Now()
		cfg := act.Config{Schedulers: 1, Trace: &act.Trace{
			TurnStart: func(*act.Task) { cpuBegun, begun = threadTime(), time.Since(clock) },
			TurnEnd: func(t *act.Task, _ act.Directive) {
				if _, ok := t.Action().(*desk); ok {
					took := time.Since(clock) - begun
					most, sum = max(most, took), sum+took
					mostCPU = max(mostCPU, threadTime()-cpuBegun)
				}
			},
		}}
		end := startRun(b, x, cfg, func(s *act.Scheduler) error {
			for i := range tasks {
				s.Spawn(&talker{peer: i})
			}
			return nil
		})
		for i := range 4 {
			ended := make(chan struct{})
			x.given = nil
			if n := len(x.Report(true).Schedulers[0].Tasks); n < tasks && i > 0 {
				time.Sleep(patience)
			}
			if err := x.desks[0].probe.s.Post(func(*act.Scheduler) {
				if longestCPU = max(longestCPU, mostCPU); i == 0 {
					first = max(first, most)
				} else {
					longest = max(longest, most)
					all += sum
					census++
				}
				most, sum, mostCPU = 0, 0, 0
				close(ended)
			}); err != nil {
				b.Fatal(err)
			}
			<-ended
		}
		end()
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
	b.ReportMetric(float64(longestCPU.Microseconds())/1000, "longest-cpu-ms")
	b.ReportMetric(float64(all.Microseconds())/1000/float64(census), "sum-ms")
}

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// talker waits, and says what for as a connection does.
type talker struct {
	waker act.Waker
	peer  int
}

func (x *talker) Act(t *act.Task) act.Directive {
	x.waker = t.Waker()
	return act.Wait
}
func (x *talker) WaitsFor(w *hook.Waits) {
	w.AddPeer("input from ", hook.Address{TCP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(x.peer))})
}
