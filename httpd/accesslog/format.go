package accesslog

import (
	"net"
	"strconv"
	"unicode/utf8"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/facts"
)

// Format is the format of the lines of a [Log]: see its constants. The package comment has an example of each.
type Format uint8

const (
	Combined Format = iota // the Combined Log Format: Common, and the fields Referer and User-Agent
	Common                 // the Common Log Format: the client, the time, the request line, the status and the bytes sent
	JSON                   // an object of JSON on each line, which has the duration as well
)

// formats are their names, for flags.
var formats = []string{"combined", "common", "json"}

// append appends the line of a request whose answer is over.
func (f Format) append(to []byte, c *clock, s *act.Scheduler, w *httpd.Response, r *httpd.Request) []byte {
	sent := w.Written()
	if string(r.Method()) == "HEAD" {
		sent = 0
	}
	if f == JSON {
		return appendJSON(to, c, s, w, r, sent)
	}
	to = appendAddr(to, r.RemoteAddr(), false)
	to = append(append(append(to, " - - ["...), c.common...), `] "`...)
	if method := r.Method(); len(method) == 0 {
		to = append(to, '-')
	} else {
		to = append(appendQuoted(to, method), ' ')
		to = append(appendQuoted(to, r.Target()), ' ')
		to = append(to, r.Proto()...)
	}
	to = append(to, `" `...)
	if status := w.Status(); status == 0 {
		to = append(to, "000"...)
	} else {
		to = strconv.AppendInt(to, int64(status), 10)
	}
	to = strconv.AppendInt(append(to, ' '), sent, 10)
	if f == Combined {
		to = append(appendOr(append(to, ` "`...), r.Header("Referer")), `" "`...)
		to = append(appendOr(to, r.Header("User-Agent")), '"')
	}
	return append(to, '\n')
}

func appendJSON(to []byte, c *clock, s *act.Scheduler, w *httpd.Response, r *httpd.Request, sent int64) []byte {
	ms := c.millisecond(s.Now())
	to = append(append(to, `{"time":"`...), c.iso...)
	to = append(to, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	to = append(append(to, c.zone...), `","client":"`...)
	to = appendAddr(to, r.RemoteAddr(), true)
	to = append(to, `","tls":`...)
	to = strconv.AppendBool(to, r.Conn().Internals().EndsInBand())
	to = appendString(append(to, `,"method":`...), r.Method())
	to = appendString(append(to, `,"target":`...), r.Target())
	to = append(append(to, `,"protocol":"`...), r.Proto()...)
	to = appendString(append(to, `","host":`...), r.Host())
	to = strconv.AppendInt(append(to, `,"status":`...), int64(w.Status()), 10)
	to = strconv.AppendInt(append(to, `,"bytes":`...), sent, 10)
	// A turn may have taken long, so the clock is read.
	to = strconv.AppendFloat(append(to, `,"seconds":`...), max(0, s.Clock().Monotonic()-r.Began()).Seconds(), 'f', 6, 64)
	to = appendString(append(to, `,"referer":`...), r.Header("Referer"))
	to = appendString(append(to, `,"user_agent":`...), r.Header("User-Agent"))
	return append(to, "}\n"...)
}

// appendAddr appends the address of a client, with its port or without. One of a Unix socket has no name.
func appendAddr(to []byte, addr net.Addr, port bool) []byte {
	at := facts.AddrPort(addr)
	_, unix := addr.(*net.UnixAddr)
	switch {
	case at.IsValid() && port:
		return at.AppendTo(to)
	case at.IsValid():
		return at.Addr().AppendTo(to)
	case unix:
		return append(to, "unix:"...)
	}
	return append(to, '-') // the kernel no longer knows it
}

// most is how many bytes of a value are written.
const most = 4 << 10

// appendOr appends the value of a field, or "-" if there is none.
func appendOr(to, value []byte) []byte {
	if len(value) == 0 {
		return append(to, '-')
	}
	return appendQuoted(to, value)
}

const hex = "0123456789ABCDEF"

// appendQuoted appends a value that is between quotes.
func appendQuoted(to, value []byte) []byte {
	for rest := value[:min(len(value), most)]; ; {
		n := bare(rest)
		if to = append(to, rest[:n]...); n == len(rest) {
			return appendCut(to, value)
		}
		to = append(to, '\\', 'x', hex[rest[n]>>4], hex[rest[n]&15])
		rest = rest[n+1:]
	}
}

// bare returns how many bytes at the front of a value need no escape.
func bare(value []byte) int {
	for i, b := range value {
		if b < ' ' || b > '~' || b == '"' || b == '\\' {
			return i
		}
	}
	return len(value)
}

// appendString appends a value as a string of JSON.
func appendString(to, value []byte) []byte {
	to = append(to, '"')
	for rest := value[:min(len(value), most)]; ; {
		n := bare(rest)
		if to = append(to, rest[:n]...); n == len(rest) {
			return append(appendCut(to, value), '"')
		}
		r, size := utf8.DecodeRune(rest[n:])
		if r > 0xFFFF {
			to = appendUnit(to, 0xD800+(r-0x10000)>>10)
			r = 0xDC00 + (r-0x10000)&0x3FF
		}
		to, rest = appendUnit(to, r), rest[n+size:]
	}
}

// appendUnit appends an escape of JSON, which is for a unit of UTF-16.
func appendUnit(to []byte, r rune) []byte {
	return append(to, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

func appendCut(to, value []byte) []byte {
	if len(value) > most {
		to = append(to, "..."...)
	}
	return to
}
