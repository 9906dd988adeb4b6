package monitor_test

import (
	"fmt"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Goroutines of any kind send to a task, which takes what there is and waits for more.
func ExampleMailbox() {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	numbers := monitor.NewMailbox[int](16)
	sum := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		n, err := numbers.Take()
		if err == monitor.ErrMailboxClosed {
			return act.Done
		}
		if err != nil {
			return listener.Next(t, err) // empty: the next Send wakes us
		}
		sum += n
		return act.Yield
	}))
	var senders sync.WaitGroup
	for i := range 10 {
		senders.Go(func() { numbers.Send(i) }) // false if it is full
	}
	go func() {
		senders.Wait()
		numbers.Close()
	}()
	_ = s.Run()
	fmt.Println(sum)
	// Output: 45
}

// The limit of connections of a service, over all of its schedulers.
func ExampleConnLimiter() {
	limiter := monitor.NewConnLimiter(2)
	fmt.Println(limiter.Acquire(), limiter.Acquire(), limiter.Acquire())
	limiter.Release()
	fmt.Println(limiter.Open(), limiter.Acquire())
	// Output:
	// true true false
	// 1 true
}
