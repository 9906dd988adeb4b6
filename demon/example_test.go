package demon_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/shutdown"
)

// The strategy is part of the configuration; the rest of the program is the same with each.
func ExampleHybrid() {
	idle := demon.Hybrid(50 * time.Microsecond)
	fmt.Println(act.Run(context.Background(), act.Config{Schedulers: 1, Idle: idle}))
	// Output: <nil>
}

func ExampleEvery() {
	s := act.New(act.Config{})
	defer s.Close()
	ticks := 0
	s.Install(demon.Every(time.Millisecond, func(*act.Task) act.Directive {
		ticks++
		fmt.Println("tick", ticks)
		if ticks == 3 {
			return act.Done
		}
		return act.Wait
	}))
	fmt.Println(s.Run())
	// Output:
	// tick 1
	// tick 2
	// tick 3
	// <nil>
}

// Stay keeps a scheduler running that only serves other goroutines.
func ExampleStay() {
	s := act.New(act.Config{})
	defer s.Close()
	s.Install(demon.Stay())
	go func() {
		s.Post(func(*act.Scheduler) { fmt.Println("hello from outside") })
		s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	}()
	fmt.Println(s.Run())
	// Output:
	// hello from outside
	// <nil>
}
