package httpd

import "time"

// pace measures how fast a client takes what it is sent, in however many responses: from when something could not go out
// at once, until all has gone out.
type pace struct {
	put   int64         // bytes given to the connection, and those that were queued at the beginning
	mark  int64         // how many of them the client had taken when it was last looked at
	since time.Duration // when that was
}

// until returns when it is looked at again.
func (p *pace) until(v *Server) time.Duration {
	if p == nil { // all has gone out meanwhile
		return never
	}
	return p.since + or(v.Timeouts.Write, time.Minute)
}

// give gives bytes to the connection.
func (x *session) give(p []byte) (int, error) {
	if x.pace != nil && x.conn.Queued() == 0 {
		x.pace = nil
	}
	n, err := x.conn.Write(p)
	x.given(int64(n))
	return n, err
}

func (x *session) given(n int64) {
	if x.pace != nil {
		x.pace.put += n
	}
}

// stalled is called when there is no room for more. It reports whether the client has been too slow for all of
// Timeouts.Write, and begins a new measurement if it has not.
func (x *session) stalled() bool {
	now, p := x.conn.Scheduler().Now(), x.pace
	if p == nil {
		x.pace = &pace{put: int64(x.conn.Queued()), since: now}
		return false
	}
	until := p.until(x.server)
	if now < until {
		return false
	}
	_ = x.conn.Flush() // a system may report late that there is room; an error is the next call's
	taken := p.put - int64(x.conn.Queued())
	if float64(taken-p.mark) < (until-p.since).Seconds()*slowest {
		return true
	}
	p.since, p.mark = now, taken
	return false
}
