package act

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/terms"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/internal/wheel"
	"github.com/daimon-go/daimon/shutdown"
)

// Scheduler runs actions on one thread, one turn at a time. Its life is: New (or a Group's), Run or
// Step as often as wanted, Close. Only Post and Shutdown (and Here, Execute, Reserve, Clock, Group, Index, Logger)
// may be called from other goroutines; every other method belongs to the thread that is in Run or
// Step, or between two of those to whoever runs it next.
type Scheduler struct {
	// The round.
	ready     queue // what is left of the present one, and behind it the next
	running   *Task // whose turn it is, or was last in this go of take; otherwise nil
	err       error // Task.Err
	ends      []turnEnder
	ended     uint64 // turns and posted functions; see turnCount
	sincePass int    // turns of tasks taken
	turns     int    // Config.Turns

	// The pass.
	passing  bool  // stopped inside a pass, among its demons
	demonic  queue // demons that have their turn in this pass
	demons   queue // those of the next
	timers   wheel.Wheel[*Timer]
	now      time.Duration
	clock    Clock
	idler    atomic.Pointer[idling]
	asleep   atomic.Bool // whoever turns it to false interrupts the Idler
	sleeps   int         // since breathed; see breathe
	breathed time.Duration

	// What arrives from other goroutines.
	posts        *inbox.Ring[func(*Scheduler)]
	room         room
	remoteEvents inbox.Stack[remoteEvent]
	orders       inbox.Stack[shutdown.Order]
	orderPending atomic.Bool // true while orders has any and while one is in force; true a little longer is no harm

	// What holds Run: live tasks, demons that are not in the background, and Hold. The exhausted are among
	// them, and do not.
	live, installed, held int
	exhausted             queue // out of turns under an order
	exhaustedCount        int

	// The end.
	order     shutdown.Order
	terms     terms.Terms
	concluded uint          // orders that are spent, or Runs that have returned
	cut       *shutdown.Cut // what was dropped on the way
	broken    error         // why nothing may run here any more
	inside    bool          // in Run or Step
	closed    bool

	slab   slab
	self   Task // owns the timers of CallAt
	locals []any
	made   []any // the values of locals, in the order of making
	group  *Group
	index  int
	trace  *Trace
	logger *zap.Logger
	crash  bool
	active bool          // in Group.active
	exited atomic.Bool   // not in Run
	thread uint64        // of the latest Run or Step
	at     atomic.Uint64 // thread while in Run or Step, else 0
	tied   []hook.Tied
	word   uint // see touch
}

// New returns a scheduler by itself: a Group of one, without threads of its own. Run it on the
// goroutine of your choice.
func New(cfg Config) *Scheduler {
	cfg.Schedulers = 1
	return NewGroup(cfg).schedulers[0]
}

func newScheduler(g *Group, index int) *Scheduler {
	s := &Scheduler{
		group:  g,
		index:  index,
		turns:  g.cfg.TurnsPerPass,
		clock:  g.cfg.Clock,
		posts:  inbox.NewRing[func(*Scheduler)](g.cfg.Inbox),
		trace:  g.cfg.Trace,
		logger: g.cfg.Logger,
		crash:  g.cfg.Crash,
	}
	s.room.init()
	s.self.s = s
	s.now = s.clock.Monotonic()
	s.SetIdler(newParker())
	return s
}

// Spawn takes a into care as a task; its first turn is in the next round.
func (s *Scheduler) Spawn(a Action) {
	s.admit(a, 0)
	s.live++
}

// Install takes d into care as a demon; its first turn is in the next pass. It holds Run until it
// ends.
func (s *Scheduler) Install(d Demon) {
	s.admit(d, isDemon)
	s.installed++
}

// Attach is Install for a monitor: it does not hold Run, since those who wait with it do, and it stays
// when an end drops everything else.
func (s *Scheduler) Attach(d Demon) {
	s.admit(d, isDemon|background)
}

// Hold adds n to the reasons for Run to go on, or takes them back. It is for work that no task
// waits for any more, such as the last bytes of a connection.
func (s *Scheduler) Hold(n int) {
	s.touch()
	if s.held += n; s.held < 0 {
		panic("act: Hold taken back more often than given")
	}
}

func (s *Scheduler) admit(a Action, f flags) {
	s.touch()
	if a == nil {
		panic("act: no action to take care of")
	}
	if s.closed {
		panic("act: Spawn or Install on a closed Scheduler")
	}
	t := s.slab.get(s)
	t.action, t.flags, t.left = a, f|untold, s.terms.Turns
	if tr := s.trace; tr != nil && tr.Spawned != nil {
		tr.Spawned(t)
	}
	s.enqueue(t)
}

// enqueue makes t ready: behind everybody else of its kind.
func (s *Scheduler) enqueue(t *Task) {
	t.state = ready
	if t.flags&isDemon == 0 {
		s.ready.push(t)
	} else {
		s.demons.push(t)
	}
}

// Group is the set of schedulers that s belongs to; it has at least s. Any goroutine.
func (s *Scheduler) Group() *Group { return s.group }

// Index is the place of s in its Group, from 0. Any goroutine.
func (s *Scheduler) Index() int { return s.index }

// Clock is the Group's. Any goroutine.
func (s *Scheduler) Clock() Clock { return s.clock }

// Logger is Config.Logger, or what stands for it. Any goroutine.
func (s *Scheduler) Logger() *zap.Logger { return s.logger }

// Execute hands f to the Group's Executor. Any goroutine.
func (s *Scheduler) Execute(f func()) { s.group.cfg.Executor.Execute(f) }

// turnEnder is an argument of AtTurnEnd.
type turnEnder = interface{ TurnEnd() }

// AtTurnEnd calls x.TurnEnd once, after the present turn or posted function has ended, however it ended, and
// before its verdict is looked at: a wake-up of the task whose turn it was counts for the Wait that it
// answered. Those given in one turn are called in order. Given between turns, x is called after the
// next one.
func (s *Scheduler) AtTurnEnd(x interface{ TurnEnd() }) {
	s.touch()
	s.ends = append(s.ends, x)
}

// turnCount is how many turns and posted functions have ended. What is lent until the turn ends is lent while it
// does not change.
func (s *Scheduler) turnCount() uint64 {
	s.touch()
	return s.ended
}

// endTurn calls what AtTurnEnd collected. Each is forgotten before it is called: after a panic the
// rest still are.
func (s *Scheduler) endTurn() {
	for i := 0; i < len(s.ends); i++ { // an end may bring another
		x := s.ends[i]
		s.ends[i] = nil
		if x != nil {
			x.TurnEnd()
		}
	}
	s.ends = s.ends[:0]
}

// Here tells whether the caller is on the thread that is in Run or Step of s, inside that call. Any
// goroutine. Elsewhere than on Linux a coroutine does not recognise its scheduler's thread.
func (s *Scheduler) Here() bool {
	at := s.at.Load()
	return at != 0 && at == thread.ID()
}

// tie is hook.Tie.
func (s *Scheduler) tie(x hook.Tied) {
	s.touch()
	if !s.inside {
		s.thread = thread.ID() // in a set-up function no Run has noted it
	}
	if !slices.Contains(s.tied, x) {
		s.tied = append(s.tied, x)
	}
}

func (s *Scheduler) untie() { s.tied = slices.DeleteFunc(s.tied, hook.Tied.Untie) }

// Errors of Run, Step and Close.
var (
	ErrClosed      = errors.New("act: the scheduler is closed")
	ErrWrongThread = errors.New("act: the scheduler has coroutines that live on another thread")
	ErrGoexit      = errors.New("act: runtime.Goexit ended the goroutine of a scheduler")
	ErrRunning     = errors.New("act: already running")
	ErrStepped     = errors.New("act: the schedulers of this Group are Stepped, it does not Run")
	ErrDropped     = errors.New("act: dropped before it had finished") // only Trace.Ended sees it
)

// Close drops what is left, reporting it as a *shutdown.Cut, and closes the Locals, the latest first.
// Post and Shutdown do nothing from then on. A second Close returns nil, one in a turn ErrRunning. While
// coroutines live on another thread it is ErrWrongThread.
func (s *Scheduler) Close() error {
	if s.closed {
		return nil
	}
	if s.inside {
		return ErrRunning
	}
	runtime.LockOSThread() // as in Run: a coroutine wants the thread to be locked as often as when it was made
	defer runtime.UnlockOSThread()
	if err := s.rightThread(); err != nil {
		return err
	}
	s.closed = true
	s.posts.Close()
	s.orders.Close()
	s.room.announce()
	cut := s.census()
	s.dropAll()
	s.closeLocals()
	s.slab.all(func(t *Task) { // the monitors
		if t.state != abandoned {
			s.drop(t)
		}
	})
	for n := s.remoteEvents.Close(); n != nil; {
		next := n.Next()
		n.Of.handle(s)
		n = next
	}
	s.untie()
	if cut != nil {
		cut.Dropped = true
		return cut
	}
	return nil
}

// close closes c, which a task or the scheduler owned. Nobody is left to give its error to.
func (s *Scheduler) close(c io.Closer) {
	if err := c.Close(); err != nil {
		s.logger.Warn("closing failed", zap.Error(err))
	}
}

// closeFor is close for a c whose panic is reported and stops nobody.
func (s *Scheduler) closeFor(who fmt.Stringer, c io.Closer) {
	if p := s.guard(func() { s.close(c) }); p != nil {
		s.report(who, p)
	}
}

// touch lets the race detector see a call from a foreign goroutine: one plain word, written by every
// method that is not for other goroutines.
func (s *Scheduler) touch() {
	if race.Enabled {
		s.word++
	}
}
