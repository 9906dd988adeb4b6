package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/daimon-go/daimon/stage/store"
)

// SetProgress notes how far the processor that was given ctx has come, such as the last row that it has read, in place
// of the progress noted before. The next try of the stage gets a copy of data as Task.Progress. If the stage fails, is
// suspended or is interrupted, data is stored when the task goes back; after a crash the next try gets the data that a
// heartbeat has stored. With empty data the next try begins anew.
//
// A processor may call SetProgress often, from any of its goroutines: that costs a copy, and each heartbeat stores no
// more than the latest. After the processor has returned, SetProgress does nothing. It panics if data has more than
// 4096 bytes, or if ctx is not the context of a processor or derived from one.
func SetProgress(ctx context.Context, data []byte) {
	n, ok := ctx.Value(noted{}).(*notes)
	if !ok {
		panic("stage: SetProgress is for the context that a processor was given")
	}
	if len(data) > mostProgress {
		panic(fmt.Sprintf("stage: SetProgress with %d bytes; %d is the most", len(data), mostProgress))
	}
	n.set(data)
}

const mostProgress = 4096

type noted struct{}

// notes has the progress that a processor has noted in one try of a stage. nil has none.
type notes struct {
	stage string

	mu     sync.Mutex
	data   []byte
	number int // of data; 0 if nothing was noted
	stored int // the number that a heartbeat has stored
	over   bool
}

func (n *notes) set(data []byte) {
	data = slices.Clone(data)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.data = data
		n.number++
	}
}

// end ends the try: a goroutine that the processor has left behind can change nothing.
func (n *notes) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}

// unstored returns the progress that no heartbeat has stored yet, and its number.
func (n *notes) unstored() (p store.Progress, number int) {
	if n == nil {
		return p, 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.number == n.stored {
		return p, 0
	}
	return store.Progress{Stage: n.stage, Data: n.data}, n.number
}

// store notes that a heartbeat has stored the progress with that number.
func (n *notes) store(number int) {
	if number > 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.stored = max(n.stored, number)
	}
}

// latest returns the progress that was noted last, even if it is stored: a heartbeat that was given up may come late.
func (n *notes) latest() (p store.Progress) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.number > 0 {
			p = store.Progress{Stage: n.stage, Data: n.data}
		}
	}
	return p
}
