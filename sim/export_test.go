package sim

import (
	"slices"
	"time"
)

// Arrived returns how many bytes have arrived at the server.
func (c *Client) Arrived() int {
	if c.end == nil {
		return 0
	}
	return int(c.end.out.arrived)
}

// Counts counts what has happened in a World.
type Counts struct {
	Time          time.Duration // simulated
	Turns, Faults int
	Bites         [kinds]int
	Broken        int    // connections that a fault has refused or reset
	Hash          uint64 // of the whole history
}

// Counts returns what has happened so far.
func (w *World) Counts() Counts {
	s := w.soFar()
	return Counts{s.time, s.turns, s.faults, s.bites, s.broken, s.hash}
}

// FaultNames are the names of the faults.
var FaultNames = faultNames[:ofScenario]

// Packets returns a function of the sockets that are open now: how many packets were taken from them since, and how many of
// all were lost or refused, or came twice.
func (w *World) Packets() func() (taken, lost, doubled int) {
	all := slices.Clone(w.net.packets)
	return func() (taken, lost, doubled int) {
		for _, s := range all {
			taken += s.arrived - len(s.queue)
		}
		b := &w.stats.bites
		return taken, w.net.dropped + b[lostPacket] + b[refusedPacket], b[duplicatePacket]
	}
}
