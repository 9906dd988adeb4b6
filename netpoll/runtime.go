package netpoll

import (
	"sync"
	"time"
)

// runtimePoller is the poller of Go's runtime, which opens it with the first timer of the program or of the runtime
// itself, and ends the program if it gets no descriptor (runtime/netpoll_epoll.go, netpollinit).
var runtimePoller struct {
	sync.Mutex
	open bool
}

// openRuntimePoller makes the runtime open its poller now, if there are enough descriptors.
func openRuntimePoller() error {
	runtimePoller.Lock()
	defer runtimePoller.Unlock()
	if runtimePoller.open {
		return nil
	}
	var spare selector // takes as many as the runtime will
	if err := spare.open(); err != nil {
		return err
	}
	_ = spare.close()
	time.AfterFunc(time.Hour, func() {}).Stop()
	runtimePoller.open = true
	return nil
}
