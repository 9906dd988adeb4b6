package client

// counts are of the Calls of a scheduler.
type counts struct {
	dialled, reused, repeats, handed, busy uint64
}

// Counts implements facts.Counter.
func (d *desk) Counts(add func(name string, n uint64)) {
	add("client_connections_total", d.counts.dialled)
	add("client_reused_total", d.counts.reused)
	add("client_repeats_total", d.counts.repeats)
	add("client_handed_over_total", d.counts.handed)
	add("client_busy_total", d.counts.busy)
	idle := 0
	for _, p := range d.inOrder {
		idle += len(p.idle)
	}
	add("client_idle_connections", uint64(idle))
}
