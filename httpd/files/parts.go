package files

import "strings"

// piece is a text, followed by bytes of the file. Both may be empty.
type piece struct {
	text string
	span
}

// multipart puts several parts of a file into one body, multipart/byteranges (RFC 9110 14.6).
func multipart(parts []span, size int64, contentType, boundary string) (body []piece, length int64) {
	between := "--" + boundary
	for _, part := range parts {
		body = append(body, piece{between + "\r\nContent-Type: " + contentType +
			"\r\nContent-Range: " + contentRange(part, size) + "\r\n\r\n", part})
		between = "\r\n--" + boundary
	}
	body = append(body, piece{text: between + "--\r\n"})
	for _, p := range body {
		length += int64(len(p.text)) + p.size
	}
	return body, length
}

// boundary is made from the file's tag, since nothing here is random. RFC 2046 5.1.1 wants a boundary that does not occur
// in the file: a file that contains the answer for another file, or for an old version of itself, has another boundary in
// it. It needs no quotes.
func (v version) boundary() string {
	return "part-of-" + strings.Trim(v.tag, `"`) + "-by-daimon"
}
