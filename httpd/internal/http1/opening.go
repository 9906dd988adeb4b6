package http1

import (
	"strconv"
	"time"

	"github.com/daimon-go/daimon/httpd/internal/syntax"
)

// Opening keeps how responses begin at present, made once a second: the status line of 200, the Date field
// (RFC 9110 6.6.1), and what comes before a length. So most responses begin with one copy. The zero value is ready.
type Opening struct {
	line  []byte
	until time.Duration // of the caller's monotonic clock
}

// TimeFormat is the format of a point in time in UTC (RFC 9110 5.6.7).
const TimeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

const (
	good       = 200 - minStatus
	lengthName = "\r\nContent-Length: "
)

// Renew is called before Append if Stale: now and wall are the present time on a monotonic and on the wall clock.
func (o *Opening) Renew(now time.Duration, wall time.Time) {
	wall = wall.UTC()
	o.line = append(append(o.line[:0], lines[good]...), "\r\nDate: "...)
	o.line = append(wall.AppendFormat(o.line, TimeFormat), lengthName...)
	o.until = now + time.Second - time.Duration(wall.Nanosecond())
}

// Stale reports whether the date is that of another second.
func (o *Opening) Stale(now time.Duration) bool { return now >= o.until || len(o.line) == 0 }

// Append appends the status line, Date, and the name of Content-Length if the response is sized.
func (o *Opening) Append(to []byte, status int, sized bool) []byte {
	line := o.line
	if status != 200 {
		to = append(to, lines[status-minStatus]...)
		line = line[len(lines[good]):]
	}
	if !sized {
		line = line[:len(line)-len(lengthName)]
	}
	return append(to, line...)
}

// Date returns the field, after the end of the line before.
func (o *Opening) Date() []byte { return o.line[len(lines[good]) : len(o.line)-len(lengthName)] }

// StatusLine returns the first line of a response, without its end.
func StatusLine(status int) string { return lines[status-minStatus] }

// lines are the status lines.
var lines = func() (all [600 - minStatus]string) {
	for i := range all {
		// The space after the code stays where there is no reason (RFC 9112 4).
		all[i] = "HTTP/1.1 " + strconv.Itoa(minStatus+i) + " " + syntax.StatusText(minStatus+i)
	}
	return all
}()

const minStatus = 100
