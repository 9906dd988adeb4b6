package stage

import (
	"slices"
	"sync"
)

// notes has what a processor has noted in one try of a stage.
type notes struct {
	stage string

	mu     sync.Mutex
	data   []byte
	number int // of data; 0 if nothing was noted
	stored int // the number that a heartbeat has stored
	over   bool
}

// set notes data, unless the try is over.
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

// unstored returns what no heartbeat has stored yet, and its number.
func (n *notes) unstored() (Progress, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.number == n.stored {
		return Progress{}, 0
	}
	return Progress{n.stage, n.data}, n.number
}

// store notes that a heartbeat has stored what had that number.
func (n *notes) store(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stored = max(n.stored, number)
}

// latest returns what was noted last, whether it is stored or not: a heartbeat that was given up may come late.
func (n *notes) latest() Progress {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.number == 0 {
		return Progress{}
	}
	return Progress{n.stage, n.data}
}
