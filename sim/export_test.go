package sim

import "time"

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
