// Package checksum shows how to call a function that takes long: the executor runs it on a goroutine, and the scheduler's
// thread goes on with other tasks.
package checksum

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
)

// Work computes the checksums of files, as many at a time as Config.Offloads allows.
type Work struct {
	Out, Progress io.Writer

	read atomic.Int64 // bytes of all files
	left atomic.Int64 // files that are not finished
}

// Setup returns a set-up function that makes a task for each file. A demon reports the progress every so often, which
// must be above 0. It is attached, not installed, so it does not keep the program from ending after the last task.
func (w *Work) Setup(every time.Duration, files ...string) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		w.left.Store(int64(len(files)))
		for _, name := range files {
			s.Spawn(&sum{work: w, name: name})
		}
		s.Attach(demon.Every(every, w.report))
		return nil
	}
}

// report is the demon's tick.
func (w *Work) report(*act.Task) act.Directive {
	files := "files"
	left := w.left.Load()
	if left == 1 {
		files = "file"
	}
	_, _ = fmt.Fprintf(w.Progress, "%d bytes read, %d %s to go\n", w.read.Load(), left, files)
	return act.Wait
}

// sum is the task for one file.
type sum struct {
	work  *Work
	name  string
	begun bool
	hash  []byte
	err   error
}

// Act has two turns: one before the work, and one after it.
func (x *sum) Act(t *act.Task) act.Directive {
	if !x.begun {
		x.begun = true
		return t.Offload(x.compute)
	}
	if x.err == nil {
		_, x.err = fmt.Fprintf(x.work.Out, "%x  %s\n", x.hash, x.name)
	}
	if x.err != nil {
		return t.Fail(x.err)
	}
	return act.Done
}

// compute runs on a goroutine of the executor. Until it returns, there is no turn and no Close of x, so it may use x
// without a lock. What it shares with other tasks is atomic.
func (x *sum) compute() {
	f, err := os.Open(x.name)
	if err != nil {
		x.err = err
		return
	}
	defer f.Close()
	hash := sha256.New()
	_, x.err = io.Copy(hash, io.TeeReader(f, x.work))
	x.hash = hash.Sum(nil)
}

// Write counts bytes that were read.
func (w *Work) Write(p []byte) (int, error) {
	w.read.Add(int64(len(p)))
	return len(p), nil
}

// Close counts the file as finished, however its task ended. After a drop it runs on the executor's goroutine.
func (x *sum) Close() error {
	x.work.left.Add(-1)
	return nil
}
