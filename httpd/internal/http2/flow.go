package http2

import "fmt"

// Inflow is the flow control of what a peer sends, on a stream or on the connection (RFC 9113 5.2). Each byte of its size
// is in one of three places, padding included:
//
//	window ── Receive ──▶ held ── Take ──▶ owed ── Give ──▶ window
//
// So a peer sends no more than its receiver takes, whatever becomes of the bytes.
type Inflow struct {
	size   int32
	window int32 // what the peer may send
	held   int32 // received, and not taken yet
	owed   int32 // taken, and not given back yet
}

// NewInflow returns the flow of a peer that may send size bytes at first: at most MaxWindow.
func NewInflow(size uint32) Inflow { return Inflow{size: int32(size), window: int32(size)} }

// Receive notes n bytes of a DATA frame. It reports whether the peer was allowed to send them: if not, nothing is noted,
// and the answer is FLOW_CONTROL_ERROR (RFC 9113 6.9.1).
func (f *Inflow) Receive(n uint32) bool {
	if int64(n) > int64(f.window) {
		return false
	}
	f.window -= int32(n)
	f.held += int32(n)
	return true
}

// Take notes that n bytes were read, or discarded.
func (f *Inflow) Take(n uint32) {
	if int64(n) > int64(f.held) {
		panic(fmt.Sprintf("http2: %d bytes are taken of %d that are held", n, f.held))
	}
	f.held -= int32(n)
	f.owed += int32(n)
}

// Give returns the increment for a WINDOW_UPDATE, which the caller sends. It is 0 as long as less than half of the size
// is owed, so that there are few such frames. A peer never waits for what is left over: it still has as much in its
// window, or its bytes are held.
func (f *Inflow) Give() (increment uint32) {
	if f.owed < f.size-f.owed {
		return 0
	}
	increment = uint32(f.owed)
	f.window, f.owed = f.window+f.owed, 0
	return increment
}

// Grow makes the size larger by n, or by as much as is allowed. Give returns the difference in time.
func (f *Inflow) Grow(n uint32) {
	more := int32(min(int64(n), int64(MaxWindow-f.size)))
	f.size, f.owed = f.size+more, f.owed+more
}

// Size returns how much the peer may send at most without being read.
func (f *Inflow) Size() uint32 { return uint32(f.size) }

// Held returns how many bytes were received and are not taken yet.
func (f *Inflow) Held() uint32 { return uint32(f.held) }

// Check returns an error if bytes were lost or found. It is for tests.
func (f *Inflow) Check() error {
	sum := int64(f.window) + int64(f.held) + int64(f.owed)
	if min(f.window, f.held, f.owed) < 0 || sum != int64(f.size) {
		return fmt.Errorf("http2: a window of %d, %d held and %d owed are not %d", f.window, f.held, f.owed, f.size)
	}
	return nil
}

// Outflow is the flow control of what is sent to a peer, on a stream or on the connection. The zero value has no room.
type Outflow struct{ room int32 } // below 0 after the peer has made its initial window smaller (RFC 9113 6.9.2)

// Add notes that the peer allows n bytes more, or less after SETTINGS. It reports whether it may: if the sum is above
// MaxWindow, nothing is noted, and the answer is FLOW_CONTROL_ERROR (RFC 9113 6.9.1, 6.9.2).
func (f *Outflow) Add(n int64) bool {
	sum := int64(f.room) + n
	if sum > MaxWindow || sum < -MaxWindow {
		return false
	}
	f.room = int32(sum)
	return true
}

// Take notes that n bytes are sent.
func (f *Outflow) Take(n int) {
	if n > f.Room() {
		panic(fmt.Sprintf("http2: %d bytes are sent where %d are allowed", n, f.Room()))
	}
	f.room -= int32(n)
}

// Room returns how many bytes may be sent. It is never negative.
func (f *Outflow) Room() int { return max(0, int(f.room)) }
