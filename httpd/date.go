package httpd

import (
	"time"

	"github.com/daimon-go/daimon/act"
)

// date has how a response begins at present, made once a second: the status line of 200, the Date field (RFC 9110
// 6.6.1), and what comes before a length. So most responses begin with one copy.
type date struct {
	line  []byte
	until time.Duration // on the scheduler's clock
}

// TimeFormat is how HTTP writes a point in time, which has to be in UTC (RFC 9110 5.6.7).
const TimeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

const (
	good       = 200 - minStatus
	lengthName = "\r\nContent-Length: "
)

// begin appends status line and Date, and the name of Content-Length if there is one.
func (d *date) begin(s *act.Scheduler, to []byte, status int, sized bool) []byte {
	if now := s.Now(); now >= d.until || len(d.line) == 0 {
		wall := s.Clock().Wall().UTC()
		d.line = append(append(d.line[:0], lines[good]...), "\r\nDate: "...)
		d.line = append(wall.AppendFormat(d.line, TimeFormat), lengthName...)
		d.until = now + time.Second - time.Duration(wall.Nanosecond())
	}
	line := d.line
	if status != 200 {
		to = append(to, lines[status-minStatus]...)
		line = line[len(lines[good]):]
	}
	if !sized {
		line = line[:len(line)-len(lengthName)]
	}
	return append(to, line...)
}
