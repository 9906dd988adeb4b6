package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"strconv"
)

// hear reads an answer of HTTP, with a length or in chunks. Its status has to be 200, and its content has to have as many
// bytes as -answer says.
func (k *client) hear() error {
	length, chunked, err := k.head()
	if err != nil {
		return err
	}
	if chunked {
		n, err := io.Copy(io.Discard, httputil.NewChunkedReader(k.in))
		if err != nil {
			return err
		}
		if end, err := k.in.ReadSlice('\n'); err != nil || len(end) != len("\r\n") {
			return errors.Join(fmt.Errorf("%q in place of an empty line behind chunks", end), err)
		}
		length = int(n)
	}
	switch {
	case length != k.of.answer:
		return fmt.Errorf("%d bytes of content in place of %d", length, k.of.answer)
	case !chunked:
		if _, err := k.in.Discard(length); err != nil {
			return err
		}
	}
	if more := k.in.Buffered(); more > 0 {
		return fmt.Errorf("%d bytes behind an answer", more)
	}
	return nil
}

// head reads up to the empty line. Without a length it returns -1.
func (k *client) head() (length int, chunked bool, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := k.in.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		line = bytes.TrimSpace(line)
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			return length, chunked, nil
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return 0, false, fmt.Errorf("the status line is %q", line)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, false, err
			}
		}
	}
}
