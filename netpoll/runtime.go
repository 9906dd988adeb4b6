package netpoll

import (
	"sync"
	"time"
)

// runtimePoller is that of Go's runtime, which opens it with the first timer of the program, be it one of its own, and
// ends the program if there is no descriptor for it then (runtime/netpoll_epoll.go, netpollinit).
var runtimePoller struct {
	sync.Mutex
	open bool
}

// openRuntimePoller has the runtime open its poller now, if there are descriptors enough.
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
