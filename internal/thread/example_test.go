package thread_test

import (
	"fmt"
	"runtime"

	"github.com/daimon-go/daimon/internal/thread"
)

// One thread for each CPU. They are never unlocked: each ends with its goroutine.
func Example() {
	same := make(chan bool)
	for _, cpu := range thread.CPUs() {
		go func() {
			runtime.LockOSThread()
			if err := thread.Bind(cpu); err != nil {
				fmt.Println("slower, but correct:", err)
			}
			home := thread.ID()
			runtime.Gosched()
			same <- thread.ID() == home
		}()
	}
	for range thread.CPUs() {
		if !<-same {
			fmt.Println("moved")
		}
	}
	// Output:
}
