package monitor_test

import (
	"fmt"

	"github.com/daimon-go/daimon/monitor"
)

// A ConnLimiter bounds the connections of a service over all schedulers.
func ExampleConnLimiter() {
	limiter := monitor.NewConnLimiter(2)
	fmt.Println(limiter.Acquire(), limiter.Acquire(), limiter.Acquire())
	limiter.Release()
	fmt.Println(limiter.Conns(), limiter.Acquire())
	// Output:
	// true true false
	// 1 true
}
