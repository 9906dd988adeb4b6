package act_test

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
)

// leap is a Clock, and an Idler for it, which advances the clock instead of sleeping.
type leap struct{ now time.Duration }

func (l *leap) Monotonic() time.Duration { return l.now }
func (l *leap) Wall() time.Time          { return time.Unix(0, 0).Add(l.now) }

// Idle is not for programs that wait for other goroutines: it does not really sleep.
func (l *leap) Idle(atMost time.Duration) { l.now += max(atMost, 0) }

// Interrupt would end a sleep.
func (l *leap) Interrupt() {}

// The Clock and the Idler can be replaced, so a test of something that takes a night ends at once.
func ExampleIdler() {
	var night leap
	s := act.New(act.Config{
		Clock: &night,
		Idle:  func(*act.Scheduler, act.Idler) act.Idler { return &night },
	})
	defer s.Close()
	s.Spawn(act.Seq(&nap{after: 8 * time.Hour}, say("good morning")))
	_ = s.Run()
	fmt.Println(night.now.Round(time.Second))
	// Output:
	// good morning
	// 8h0m0s
}
