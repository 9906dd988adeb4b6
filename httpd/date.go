package httpd

import (
	"time"

	"github.com/daimon-go/daimon/act"
)

// date has how a response begins at present, made once a second: the status line of 200, and the Date field (RFC 9110
// 6.6.1) behind it.
type date struct {
	line  []byte
	until time.Duration // on the scheduler's clock
}

// TimeFormat is how HTTP writes a point in time, which has to be in UTC (RFC 9110 5.6.7).
const TimeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// begin appends status line and Date.
func (d *date) begin(s *act.Scheduler, to []byte, status int) []byte {
	const good = 200 - minStatus
	if now := s.Now(); now >= d.until || len(d.line) == 0 {
		wall := s.Clock().Wall().UTC()
		d.line = append(append(d.line[:0], lines[good]...), "Date: "...)
		d.line = append(wall.AppendFormat(d.line, TimeFormat), "\r\n"...)
		d.until = now + time.Second - time.Duration(wall.Nanosecond())
	}
	if status == 200 {
		return append(to, d.line...)
	}
	return append(append(to, lines[status-minStatus]...), d.line[len(lines[good]):]...)
}
