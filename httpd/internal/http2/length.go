package http2

import "strconv"

// AppendContentLength appends the field Content-Length.
func AppendContentLength(to []byte, n int64) []byte {
	to = append(to, prefix, contentLength-prefix, 0)
	at := len(to)
	to = strconv.AppendInt(to, n, 10) // less than 0x7F digits
	to[at-1] = byte(len(to) - at)
	return to
}

const contentLength = 28 // in the static table
