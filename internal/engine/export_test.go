package engine

// Waiting is how many wait for a place in l.
func Waiting(l *Limiter) int { return int(l.waiting.Load()) }
