package httpd

import "time"

// pace is how fast a client takes what it is sent, in however many responses: it is held to a rate from when something
// could not go out at once, until all has gone out.
type pace struct {
	put   int64         // octets given to the connection, and those that were queued at the beginning
	mark  int64         // how many of them the client had taken when it was last looked at
	since time.Duration // when that was
}

// until is when it is looked at again.
func (p *pace) until(v *Server) time.Duration {
	if p == nil { // all has gone out meanwhile
		return never
	}
	return p.since + or(v.Timeouts.Write, time.Minute)
}

// give gives octets to the connection.
func (x *session) give(octets []byte) (int, error) {
	if x.pace != nil && x.conn.Queued() == 0 {
		x.pace = nil
	}
	n, err := x.conn.Write(octets)
	x.given(int64(n))
	return n, err
}

func (x *session) given(n int64) {
	if x.pace != nil {
		x.pace.put += n
	}
}

// stalled is asked when there is no room for more. It tells whether the client has been too slow for as long as
// Timeouts.Write, and begins anew if it has not.
func (x *session) stalled() bool {
	now, p := x.home.s.Now(), x.pace
	if p == nil {
		x.pace = &pace{put: int64(x.conn.Queued()), since: now}
		return false
	}
	until := p.until(x.server)
	if now < until {
		return false
	}
	_ = x.conn.Flush() // a system may tell late that there is room; an error is the next call's
	taken := p.put - int64(x.conn.Queued())
	if float64(taken-p.mark) < (until-p.since).Seconds()*slowest {
		return true
	}
	p.since, p.mark = now, taken
	return false
}
