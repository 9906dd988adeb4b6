// Package report shows work in stages: it makes reports on the words of files. The first stage reads a file, which may take
// long, and stores the counts; the second writes the report from them. If the program is killed, a stage that has ended is
// not repeated, and a stage that has not ended leaves nothing behind.
//
//	CREATED ──COUNTING_WORDS──▶ WORDS_COUNTED ──BUILDING_REPORT──▶ FINISHED
//	              count.go        counts, words      text.go        reports
//
// Below the static stages are the tables in which the task has rows from then on.
//
// # Files that cannot be counted
//
// A file that does not exist, may not be read, is not a regular file, or is not text in UTF-8 fails for good, at CREATED.
// The other files are not affected. A file that is changed while it is read is read again, a few times. Changes after
// that make no difference to the report. An empty file has a report like any other.
package report

import (
	"crypto/rand"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// kind is that of the tasks. The data of a task is the absolute path of its file.
const kind = "report"

// The stages at which tasks begin and end.
const (
	first = "CREATED"
	last  = "FINISHED"
)

var chain = stage.Begin(first).
	Then("COUNTING_WORDS", "count words", "WORDS_COUNTED").
	Then("BUILDING_REPORT", "build report", last)

// Work makes reports until nothing is left to do, and prints the progress. It is used by one Group.
//
// The engine is a service of that Group, rather than on goroutines of its own (Engine.Run), because it is not alone: the
// poller runs beside it, and signals are orders. So one order ends all of them, within one time limit.
type Work struct {
	Reports *Reports

	Files []string      // added at first, in one transaction
	Pace  time.Duration // a pause after each line that is read or written
	Stay  bool          // go on when nothing is left to do, for files that other programs add

	// As in stage.Config.
	Workers  int
	Attempts int
	Lease    time.Duration
	Logger   *zap.Logger

	// Out gets a line for each change. It may block.
	Out io.Writer

	engine *stage.Engine

	mu       sync.Mutex // guards what follows, and Out
	files    []string   // still to be added, all or none
	name     string     // of this work, so that they are added once
	progress *progress  // nil before the first look

	failure error // has ended the work; used on the scheduler's thread
}

// Terms are those on which the work ends. Stages under way are interrupted at once.
var Terms = shutdown.Policy{Time: 5 * time.Second, Drop: true}

// Setup is a set-up function. All of it runs on the Group's first scheduler.
func (w *Work) Setup(s *act.Scheduler) (err error) {
	if s.Index() != 0 {
		return nil
	}
	w.engine, err = stage.New(stage.Config{
		Store: w.Reports.Store,
		Kinds: map[string]stage.Kind{kind: {Chain: chain}},
		Provider: stage.Processors{
			"count words":  stage.ProcessorFunc(w.countWords),
			"build report": stage.ProcessorFunc(w.buildReport),
		},
		Workers:  w.Workers,
		Attempts: w.Attempts,
		Lease:    w.Lease,
		Logger:   w.Logger,
	})
	if err != nil {
		return err
	}
	if err := w.engine.Setup(s); err != nil {
		return err
	}
	w.files, w.name = w.Files, rand.Text()
	s.Install(&poller{work: w})
	return nil
}
