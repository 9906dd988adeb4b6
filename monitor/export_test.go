package monitor

// Waiting is how many wait for a place in l.
func Waiting(l *ConnLimiter) int { return int(l.waiting.Load()) }
