// Package handler is the handler of the measured servers that run handlers of net/http.
package handler

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// Large is what /download sends, of the length of what /upload is sent.
var Large = bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)

// Serve greets. It sends Large under /download, and reads all of a body under /upload.
func Serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain") // else the body is looked at to find one
	switch r.URL.Path {
	case "/download":
		h.Set("Content-Length", strconv.Itoa(len(Large))) // else it is sent in chunks
		_, _ = w.Write(Large)
		return
	case "/upload":
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != int64(len(Large)) {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	_, _ = io.WriteString(w, "Hello, World!")
}
