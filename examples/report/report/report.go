// Package report is work in stages: reports on the words of files. A file is read once, which may take long; what was
// counted is kept, and the report is written from that. Whatever happens to the process, a stage that has ended is not
// done again, and one that has not leaves nothing behind.
//
//	CREATED ──COUNTING_WORDS──▶ WORDS_COUNTED ──BUILDING_REPORT──▶ FINISHED
//	              count.go        counts, words      text.go        reports
//
// The names below the static stages are the tables that have a row for the task from there on.
//
// # What becomes of a file
//
// One that is not there, may not be read, is a directory or a pipe, or has something else in it than text in UTF-8
// fails for good, at CREATED, and disturbs no other. One that is changed while it is read is read again, a few times.
// The report is on what was read: what becomes of the file afterwards makes no difference. An empty file has a report
// like any other.
package report

import (
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// kind is that of the tasks. Their data is the absolute path of a file.
const kind = "report"

var chain = stage.Begin("CREATED").
	Then("COUNTING_WORDS", "count words", "WORDS_COUNTED").
	Then("BUILDING_REPORT", "build report", "FINISHED").
	MustBuild()

// Work makes reports until nothing is left to be done, and says what becomes of each. It is for one Group.
//
// The engine is a service of that Group, and not on goroutines (Engine.Run), because it is not alone there: signals
// are orders, and what adds files, says how far they are and sees that nothing is left is a demon beside it. One order
// ends all of them, each in its own way, and one bound holds for all.
type Work struct {
	Reports *Reports

	Files []string      // are added first, in one transaction
	Pace  time.Duration // a pause after each line that is read or written
	Stay  bool          // goes on when nothing is left: somebody may add something

	// As in stage.Config.
	Workers  int
	Attempts int
	Lease    time.Duration
	Logger   *zap.Logger

	// Out is told what happens. It may block.
	Out io.Writer

	engine *stage.Engine

	mu    sync.Mutex // who has the pen
	files []string   // still to be added, all or none
	news  *news      // nil before the first look

	failure error // has ended the work; of the scheduler's thread
}

// Terms are those on which work ends. What is under way hears of it at once.
var Terms = shutdown.Policy{Time: 5 * time.Second, Drop: true}

// Setup is a set-up function. The Group's first scheduler does it all; it has little to do.
func (w *Work) Setup(s *act.Scheduler) (err error) {
	if s.Index() != 0 {
		return nil
	}
	w.engine, err = stage.New(stage.Config{
		Store:  w.Reports.Store,
		Chains: map[string]*stage.Chain{kind: chain},
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
	w.files = w.Files
	s.Install(&clerk{work: w})
	return nil
}
