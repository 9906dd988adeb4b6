package sim

import "time"

// Hurt tells whether a fault has refused the client's connection or broken it.
func (c *Client) Hurt() bool { return c.w.net.hurt(c.end) }

// Held tells whether a fault has kept something from arriving for seconds.
func (c *Client) Held() bool { return c.w.net.held(c.end) }

// Arrived is how many bytes have come to the server's end.
func (c *Client) Arrived() int {
	if c.end == nil {
		return 0
	}
	return int(c.end.out.arrived)
}

// Hides tells whether a receive may say that there is no more although there is.
func (w *World) Hides() bool { return w.faults.FalseEmpty > 0 || w.faults.ShortRead > 0 }

// Chokes tells whether a send may take less than there is room for.
func (w *World) Chokes() bool { return w.faults.FalseFull > 0 || w.faults.ShortWrite > 0 }

// Counts is what has happened in a World.
type Counts struct {
	Time          time.Duration // simulated
	Turns, Broken int           // Broken are the connections that a fault has refused or reset
	Hash          uint64        // of the whole history
}

// Counts returns what has happened so far.
func (w *World) Counts() Counts {
	s := w.soFar()
	return Counts{s.time, s.turns, s.broken, s.hash}
}
