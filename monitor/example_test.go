package monitor_test

import (
	"fmt"

	"github.com/daimon-go/daimon/monitor"
)

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
