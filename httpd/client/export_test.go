package client

// Conns returns how many connections an Origin has on all schedulers, with the ones that are being made.
func (o *Origin) Conns() int { return int(o.taken.Load()) }
