package accesslog

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/monitor"
)

// Log is an access log. It is a service: set it up before the services whose requests it logs, and give its OnResponse
// to their httpd.Servers, of which any number may share it. Its fields must not be changed after Setup.
//
// Make few of them: a Log takes a little memory of each scheduler for as long as the process lives.
type Log struct {
	// Path is the path of the file, which is created if it does not exist, and appended to. It may be a named pipe that has a
	// reader. "-" means standard output. With the flags of package program "" means no log, and without them standard output.
	// If its reader goes away, lines are lost, and the kernel ends the process unless it catches SIGPIPE, as package program does.
	Path string
	// Format is the format of the lines: Combined, which is the zero value, Common or JSON.
	Format Format

	off   bool // the flags ask for no log
	once  sync.Once
	books *act.Local[*book]
	lost  atomic.Uint64 // lines

	mu     sync.Mutex // not held while lines are added or written
	writer *writer    // nil without a scheduler
}

// Setup opens the file, and opens it again on each SIGHUP, which is logged in one line and no longer ends the program. It
// is a set-up function for act.Run. It fails if the file cannot be opened.
func (l *Log) Setup(s *act.Scheduler) error {
	if l.off {
		return nil
	}
	l.once.Do(func() { l.books = act.NewLocal(l.newBook) })
	if err := l.open(s); err != nil {
		return err
	}
	l.books.Get(s)
	if s.Index() > 0 {
		return nil
	}
	return monitor.OnSignal(hangup{l, s.Logger()}, syscall.SIGHUP)(s)
}

// OnResponse returns the function that adds the line of a request, for the field of that name of an httpd.Server. The function
// panics on a scheduler that Setup was not called for. OnResponse may be called before and after the flags are parsed. If they
// ask for no log, nothing is logged.
func (l *Log) OnResponse() func(*httpd.Response, *httpd.Request) {
	if l.off {
		return nil
	}
	return l.add
}

func (l *Log) add(w *httpd.Response, r *httpd.Request) {
	if l.off {
		return
	}
	if l.books == nil {
		panic(missing)
	}
	l.books.Get(r.Scheduler()).add(w, r)
}

const missing = "accesslog: a Log that was not set up: it has to be among the services"

// Reopen opens the file again, for a program that has renamed it: lines that were not written yet go to a new file of that
// name. After an error they go to the old one. It does nothing for standard output, or after the last scheduler has ended.
// It blocks. Any goroutine may call it.
func (l *Log) Reopen() error {
	if l.standard() {
		return nil
	}
	file, err := l.file()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer == nil {
		return file.Close()
	}
	if unused := l.writer.next.Swap(file); unused != nil {
		_ = unused.Close() // nothing was written to it
	}
	l.writer.wake()
	return nil
}

func (l *Log) standard() bool { return l.Path == "" || l.Path == "-" }

func (l *Log) file() (*os.File, error) {
	// Without O_NONBLOCK, open waits until a named pipe has a reader. With it, that is an error.
	file, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return nil, fmt.Errorf("cannot open the access log: %w", err)
	}
	return file, nil
}

// open begins to write, unless another scheduler has.
func (l *Log) open(s *act.Scheduler) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer != nil {
		return nil
	}
	file := os.Stdout
	if !l.standard() {
		var err error
		if file, err = l.file(); err != nil {
			return err
		}
	}
	l.writer = newWriter(l, file, s.Logger())
	return nil
}

func (l *Log) newBook(s *act.Scheduler) *book {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer == nil {
		panic(missing)
	}
	b := &book{log: l, s: s, writer: l.writer, lines: newBatch()}
	l.writer.books = append(l.writer.books, b)
	l.writer.open++
	return b
}

// leave is called when a book gets no more lines. With the last one the writer ends, for which it waits.
func (l *Log) leave(w *writer) {
	l.mu.Lock()
	w.open--
	last := w.open == 0
	if last {
		l.writer = nil
	}
	l.mu.Unlock()
	if !last {
		return
	}
	close(w.awake)
	select {
	case <-w.done:
	case <-time.After(flushWithin):
		w.logger.Warn(fmt.Sprintf("the last lines of the access log cannot be written within %v", flushWithin))
	}
}

// flushWithin bounds how long the end of a server waits for its last lines.
const flushWithin = time.Second

// hangup is what SIGHUP does.
type hangup struct {
	*Log
	logger *zap.Logger
}

// Signal is called on a goroutine of its own.
func (h hangup) Signal(os.Signal) {
	if err := h.Reopen(); err != nil {
		h.logger.Error("the access log stays as it was", zap.Error(err))
	} else if !h.standard() {
		h.logger.Info("opened the access log " + h.Path + " again")
	}
}
