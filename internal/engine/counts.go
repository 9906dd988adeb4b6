package engine

// Counts are of what an engine has done: plain numbers of its thread.
type Counts struct {
	Receives, Received, Sends, Sent uint64 // operations that did something, and their bytes
	Short, RoomWaits                uint64 // sends of less than all, and times that a task has begun to wait for room

	Packets, PacketsSent uint64 // datagrams

	Open, Lingering uint64 // connections, now
	Accepts, Dials  uint64 // connections that were accepted, and connects that were begun
	Full, Shortages uint64 // refusals to accept: for want of a place; of descriptors, memory or permission
	Lost            uint64 // connections that were gone before they could be accepted
	Broken          uint64 // by the peer, or the way to it
	Aborts, Lingers uint64 // connections that were reset by this side, and those closed in stages
}

// Counts implements facts.Counter.
func (c *Counts) Counts(add func(name string, n uint64)) {
	add("datagrams_received_total", c.Packets)
	add("datagrams_sent_total", c.PacketsSent)
	add("connections", c.Open)
	add("connections_lingering", c.Lingering)
	add("connections_accepted_total", c.Accepts)
	add("connections_dialled_total", c.Dials)
	add("connections_lingered_total", c.Lingers)
	add("connections_aborted_total", c.Aborts)
	add("connections_broken_total", c.Broken)
	add("accepts_lost_total", c.Lost)
	add("accepts_full_total", c.Full)
	add("accepts_short_total", c.Shortages)
	add("receives_total", c.Receives)
	add("received_bytes_total", c.Received)
	add("sends_total", c.Sends)
	add("sent_bytes_total", c.Sent)
	add("sends_short_total", c.Short)
	add("waits_for_room_total", c.RoomWaits)
}
