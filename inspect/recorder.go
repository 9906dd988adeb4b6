package inspect

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	filesKept    = 16              // in the directory, of all processes that use it
	filesAtOnce  = 4               // of one reason that are written at once,
	fileRefill   = time.Minute     // and each makes room for another one after this time
	filePatience = 2 * time.Second // of a Close, or of a process that a panic ends, for files under way
)

// reason is why a file is written.
type reason string

const (
	aPanic  reason = "panic"
	aStall  reason = "stall"
	aSignal reason = "signal"
)

// recordings counts the files of [Inspector.Dir] since the start.
type recordings struct {
	Written    uint64 `json:"written"`
	Suppressed uint64 `json:"suppressed"` // there were too many of that reason at the time
	Failed     uint64 `json:"failed"`     // could not be written
}

// recorder writes files with the latest events, on a goroutine of its own: no scheduler waits for a disk.
type recorder struct {
	of               *Inspector
	log              *zap.Logger
	dir              string
	create           func(path string) (io.WriteCloser, error)
	refill, patience time.Duration // fileRefill, filePatience

	asked chan *recording // nil: the recorder is closed
	ended chan struct{}

	number                      atomic.Uint64 // of the latest file
	underway                    map[reason]*atomic.Int32
	written, suppressed, failed atomic.Uint64
	failing                     bool // the latest file could not be written, which was logged
}

// recording is a file that is to be written.
type recording struct {
	reason
	path string
	at   time.Time
	why  string // in a sentence
	more string // lines that go into the file alone
	done chan struct{}

	// The scheduler that it is about, with its last events then; nil: all are read when the file is written.
	of     *probe
	events []event
	now    time.Duration // on the clock of the Group
}

func newRecorder(x *Inspector, log *zap.Logger) *recorder {
	r := &recorder{
		of: x, log: log, dir: x.Dir, refill: fileRefill, patience: filePatience,
		create: func(path string) (io.WriteCloser, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		},
		underway: map[reason]*atomic.Int32{aPanic: {}, aStall: {}, aSignal: {}},
		asked:    make(chan *recording, 3*filesAtOnce+1), ended: make(chan struct{}),
	}
	if _, err := os.ReadDir(r.dir); err != nil {
		r.failing = true
		log.Error("no files will be written with the last events", zap.Error(err))
	}
	go r.run()
	return r
}

// run is the goroutine of the recorder.
func (r *recorder) run() {
	defer close(r.ended)
	for rec := <-r.asked; rec != nil; rec = <-r.asked {
		r.write(rec)
	}
}

// close waits for the files that were asked for. Later ones are not written: signals come until the Group is closed.
func (r *recorder) close() {
	r.asked <- nil
	select {
	case <-r.ended:
	case <-time.After(r.patience):
		r.log.Error("a file with the last events could not be finished", zap.String("dir", r.dir))
	}
}

// ask has a file written, and returns at once; nil if there are too many for this reason. Any goroutine.
func (r *recorder) ask(why reason, fill func(*recording)) *recording {
	if r.underway[why].Add(1) > filesAtOnce {
		r.underway[why].Add(-1)
		r.suppressed.Add(1)
		return nil
	}
	rec := &recording{reason: why, at: time.Now(), done: make(chan struct{})}
	rec.path = filepath.Join(r.dir, fmt.Sprintf("inspect-%s-%d-%03d-%s.txt",
		rec.at.UTC().Format("20060102T150405Z"), os.Getpid(), r.number.Add(1), why))
	fill(rec)
	r.asked <- rec // there is room for all that are under way
	return rec
}

// write writes a file, and logs what has become of it. A disk that fails for long is one line in the log.
func (r *recorder) write(rec *recording) {
	defer close(rec.done)
	time.AfterFunc(r.refill, func() { r.underway[rec.reason].Add(-1) })
	if err := r.save(rec); err != nil {
		if r.failed.Add(1); !r.failing {
			r.log.Error("the last events could not be written to a file", zap.Error(err), zap.String("because", rec.why))
		}
		r.failing = true
		return
	}
	r.failing = false
	r.written.Add(1)
	r.log.Info("the last events are in a file", zap.String("file", rec.path), zap.String("because", rec.why),
		zap.Uint64("suppressed so far", r.suppressed.Load()))
}

func (r *recorder) save(rec *recording) error {
	text := r.of.recorded(rec, r.recordings())
	if err := r.makeRoom(); err != nil {
		return err
	}
	f, err := r.create(rec.path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if ended := f.Close(); err == nil {
		err = ended
	}
	if err != nil {
		_ = os.Remove(rec.path) // a part of it is of no use
	}
	return err
}

// makeRoom removes the oldest files, so that there are filesKept with the next one.
func (r *recorder) makeRoom() error {
	files, err := fs.Glob(os.DirFS(r.dir), "inspect-*.txt") // sorted by name, and so by time
	if err != nil {
		return err
	}
	for _, name := range files[:max(0, len(files)-filesKept+1)] {
		if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func (r *recorder) recordings() recordings {
	return recordings{r.written.Load(), r.suppressed.Load(), r.failed.Load()}
}

// Signal is for monitor.OnSignal.
func (r *recorder) Signal(sig os.Signal) {
	r.ask(aSignal, func(rec *recording) { rec.why = "the signal " + sig.String() })
}

// stall has a file written for a stall, and returns its path; "" if there is none. Any goroutine.
func (r *recorder) stall(s *stall) string {
	if r == nil {
		return ""
	}
	rec := r.ask(aStall, func(rec *recording) {
		rec.why = fmt.Sprintf("%s holds up scheduler %d", s.what(), s.Scheduler)
		var more strings.Builder
		fmt.Fprintf(&more, "%s, for %v so far.\n", s.why(), round(s.Lasted))
		for _, line := range s.Stack {
			fmt.Fprintf(&more, "\t%s\n", line)
		}
		rec.more = more.String()
	})
	if rec == nil {
		return ""
	}
	return rec.path
}

// panics has a file written for a panic in the turn of a task, or of a function that it has offloaded. It is for the scheduler's
// thread.
func (p *probe) panics(t uint32, kind string, stack []byte) *recording {
	return p.panicked(fmt.Sprintf("task %d of scheduler %d, %s,", t, p.index, kind), stack)
}

// panicked has a file written for any panic. What the panic said is left out: it may be of a user.
func (p *probe) panicked(who string, stack []byte) *recording {
	if p.recorder == nil {
		return nil
	}
	return p.recorder.ask(aPanic, func(rec *recording) {
		rec.why, rec.more = who+" has panicked", string(stack)
		rec.of, rec.events, rec.now = p, p.lastEvents(), p.clock()
	})
}

// Untie implements act's tied: Run or Step returns. In the middle of a turn it does so because a panic ends the process, with
// act.Config.Crash, or because the action has ended the goroutine: then the file is written before.
func (p *probe) Untie() bool {
	if x := p.sight(); x.state() == turn && p.present.directive() == unended {
		if rec := p.panics(x.id, x.kind, debug.Stack()); rec != nil {
			select {
			case <-rec.done:
			case <-time.After(p.recorder.patience):
			}
		}
	}
	p.label(nil)
	return p.watched.Untie()
}

// recorded returns the text of a file.
func (x *Inspector) recorded(rec *recording, counts recordings) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s.\n", rec.at.UTC().Format("2006-01-02T15:04:05.000Z"), rec.why)
	fmt.Fprintf(&out, "Process %d, %s. Files so far: %d written, %d suppressed, %d failed.\n",
		os.Getpid(), filepath.Base(os.Args[0]), counts.Written, counts.Suppressed, counts.Failed)
	if rec.more != "" {
		fmt.Fprintf(&out, "\n%s", rec.more)
	}
	var events bytes.Buffer
	desks, clock := x.inspected()
	writeLast(&events, desks, clock, rec) // before the questions for the Report are events themselves
	fmt.Fprintln(&out)
	x.snapshot().page(nil).writeTo(&out)
	fmt.Fprintf(&out, "\n%s", &events)
	return valid(out.Bytes())
}
