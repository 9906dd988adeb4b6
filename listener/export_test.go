package listener

import (
	"net/netip"
	"unsafe"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// What the tests measure.
const (
	ConnSize = unsafe.Sizeof(Conn{})
	Gathered = gathered
	Scarce   = scarce
)

// AtRest tells whether c has no busy part.
func AtRest(c *Conn) bool { return c.busy == nil }

// Memory is how many bytes of buffers c holds.
func Memory(c *Conn) int {
	if c.busy == nil {
		return 0
	}
	return cap(c.busy.buffer) + cap(c.busy.gather)
}

// Kept is how many small buffers and busy parts s has in stock.
func Kept(s *act.Scheduler) (buffers, busy int) {
	h := homes.Get(s)
	return len(h.buffers), len(h.idle)
}

// Resolved returns a Connect that has looked up its addresses.
func Resolved(e *monitor.IO, addresses ...netip.AddrPort) *Connect {
	return &Connect{Address: "a name", source: e.NewSource("tcp", nil), addresses: addresses, state: resolved}
}

// StreamOf is what c stands on.
func StreamOf(c *Conn) monitor.Stream { return c.stream }
