package accesslog

import (
	"bytes"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// writer writes the lines of all schedulers, on a goroutine of its own, which may block.
type writer struct {
	log    *Log
	logger *zap.Logger
	books  []*book // with log.mu
	open   int     // of them, with log.mu
	next   atomic.Pointer[os.File]
	awake  chan struct{} // closed when there are no more lines
	done   chan struct{}

	// Of the goroutine.
	file     *os.File
	torn     []byte    // the rest of a line that was written in part
	failed   error     // of the latest write
	reported uint64    // lines that were lost
	quiet    time.Time // no report until then
}

// reportWithin bounds how often lost lines are reported.
const reportWithin = 10 * time.Second

func newWriter(l *Log, file *os.File, logger *zap.Logger) *writer {
	w := &writer{log: l, logger: logger, file: file, awake: make(chan struct{}, 1), done: make(chan struct{}),
		reported: l.lost.Load()}
	go w.run()
	return w
}

// wake has the goroutine search for lines. It never blocks.
func (w *writer) wake() {
	select {
	case w.awake <- struct{}{}:
	default:
	}
}

func (w *writer) run() {
	defer close(w.done)
	for more := true; more; {
		_, more = <-w.awake
		w.adopt()
		w.log.mu.Lock()
		books := w.books
		w.log.mu.Unlock()
		for _, b := range books {
			if a := b.waiting.Swap(nil); a != nil {
				w.write(a)
				if a.reset(); cap(a.text) <= 2*handAt {
					b.free.Store(a)
				}
			}
		}
		w.report(!more)
	}
	w.adopt()
	w.release()
}

// adopt goes on with the file that was opened last.
func (w *writer) adopt() {
	if file := w.next.Swap(nil); file != nil {
		w.finish()
		if len(w.torn) > 0 {
			w.torn = nil
			w.log.lost.Add(1)
		}
		w.release()
		w.file = file
	}
}

func (w *writer) release() {
	if w.file != os.Stdout {
		if err := w.file.Close(); err != nil {
			w.failed = err
		}
	}
}

// finish writes the rest of a line.
func (w *writer) finish() error {
	if len(w.torn) == 0 {
		return nil
	}
	n, err := w.file.Write(w.torn)
	w.torn = w.torn[n:]
	return err
}

// write writes whole lines. Lines that cannot be written are lost.
func (w *writer) write(a *batch) {
	n, err := 0, w.finish()
	if err == nil {
		n, err = w.file.Write(a.text)
	}
	if err == nil {
		return
	}
	w.failed = err
	rest := a.text[n:]
	if n > 0 && a.text[n-1] != '\n' {
		end := bytes.IndexByte(rest, '\n') + 1
		w.torn, rest = bytes.Clone(rest[:end]), rest[end:]
	}
	w.log.lost.Add(uint64(bytes.Count(rest, newline)))
}

var newline = []byte{'\n'}

// report reports lines that were lost, when some time has passed since the last report, or at the end.
func (w *writer) report(ending bool) {
	lost := w.log.lost.Load() - w.reported
	if now := time.Now(); lost > 0 && (ending || !now.Before(w.quiet)) {
		w.logger.Error("lines of the access log are lost", zap.Uint64("lines", lost), zap.Error(w.failed))
		w.reported += lost
		w.failed = nil
		w.quiet = now.Add(reportWithin)
	}
}
