package sim

import "time"

// Disrupted reports whether a fault has refused or reset the client's connection.
func (c *Client) Disrupted() bool { return c.end != nil && c.end.c.disrupted }

// Delayed reports whether a fault has delayed bytes for seconds.
func (c *Client) Delayed() bool { return c.end != nil && c.end.c.delayed }

// Arrived returns how many bytes have arrived at the server.
func (c *Client) Arrived() int {
	if c.end == nil {
		return 0
	}
	return int(c.end.out.arrived)
}

// HasFalseReceives reports whether a receive may return less than has arrived.
func (w *World) HasFalseReceives() bool { return w.faults.FalseEmpty > 0 || w.faults.ShortRead > 0 }

// HasFalseSends reports whether a send may take less than there is room for.
func (w *World) HasFalseSends() bool { return w.faults.FalseFull > 0 || w.faults.ShortWrite > 0 }

// Counts counts what has happened in a World.
type Counts struct {
	Time          time.Duration // simulated
	Turns, Faults int
	Broken        int    // connections that a fault has refused or reset
	Hash          uint64 // of the whole history
}

// Counts returns what has happened so far.
func (w *World) Counts() Counts {
	s := w.soFar()
	return Counts{s.time, s.turns, s.faults, s.broken, s.hash}
}

// Each calls visit with the name and the weight of each kind of fault.
func (f *Faults) Each(visit func(name string, weight *int)) {
	for _, n := range f.all() {
		visit(n.name, n.weight)
	}
}
