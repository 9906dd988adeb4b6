package deflate

import (
	"sync"

	"github.com/klauspost/compress/flate"
)

// tail is how a compressed message ends, and is not sent (RFC 7692 7.2.1).
const tail = "\x00\x00\xff\xff"

// Compress appends p, compressed, to to. It may refer to window, the end of what came before. Any goroutine.
func Compress(to, p, window []byte) []byte {
	w := writers.Get().(*writer)
	w.p = to
	err := flate.StatelessDeflate(w, p, false, window)
	to, w.p = w.p, nil
	writers.Put(w)
	if err != nil {
		panic("websocket: compression failed: " + err.Error()) // a writer never does
	}
	return to[:len(to)-len(tail)]
}

// writer appends.
type writer struct{ p []byte }

func (w *writer) Write(p []byte) (int, error) {
	w.p = append(w.p, p...)
	return len(p), nil
}

var writers = sync.Pool{New: func() any { return &writer{} }}
