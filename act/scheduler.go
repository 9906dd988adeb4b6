package act

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/internal/wheel"
)

// Scheduler runs actions on one thread, one turn at a time: it is an event loop with its thread. It is made by [New] or
// [NewGroup]; then Run or Step is called any number of times, and Close at the end. Post, Shutdown, Clock, Group,
// Index and Logger may be called from any goroutine. All other methods belong to the thread that is in Run or
// Step; between two such calls, to the goroutine that makes the next one.
type Scheduler struct {
	// The round.
	ready     queue // the rest of this round, followed by the next
	running   *Task // whose turn it is, or was last in this call of take; otherwise nil
	err       error // Task.Err
	ends      []interface{ TurnEnd() }
	passEnds  []func()
	ended     uint64 // turns and posted functions; see internals.TurnCount
	sincePass int    // turns of tasks since the latest pass
	turns     int    // Config.TurnsPerPass

	// The pass.
	passing  bool  // stopped inside a pass, among its demons
	demonic  queue // demons that have their turn in this pass
	demons   queue // the same for the next pass
	timers   wheel.Wheel[deadline]
	now      time.Duration
	clock    Clock
	idler    atomic.Pointer[idling]
	asleep   atomic.Bool // the goroutine that sets it to false interrupts the Idler
	sleeps   int         // since breathed; see breathe
	breathed time.Duration
	kind     int                      // with which the next takeIn begins
	events   *inbox.Node[remoteEvent] // taken from remoteEvents and not handled
	read     time.Duration            // the latest reading of the clock in this pass
	unread   int                      // functions since
	stride   int                      // after how many it is read again

	// What arrives from other goroutines.
	posts        *inbox.Ring[func(*Scheduler)]
	room         inbox.Room
	remoteEvents inbox.Stack[remoteEvent]

	ending // what has to do with shutdown

	// What keeps Run from returning: live tasks, demons that are not in the background, and KeepRunning. Exhausted
	// tasks are counted here, but do not keep Run from returning.
	live, installed, held int

	// Its life.
	inside bool // in Run or Step
	closed bool
	broken error         // why nothing may run here any more
	active bool          // counted in Group.active
	exited atomic.Bool   // not in Run
	users  atomic.Int32  // see letGo
	thread uint64        // of the latest Run or Step
	at     atomic.Uint64 // thread while in Run or Step, else 0
	tied   []tied        // what lives on thread

	// Its parts.
	slab   slab
	self   Task // owns the timers of CallAt
	locals []any
	made   []any // the values of locals, in the order of making
	group  *Group
	index  int
	logger *zap.Logger
	crash  bool // Config.Crash

	// Who watches it.
	trace    *Trace
	observer observer
	counts   counts
	word     uint // see touch
}

// New returns a scheduler that is alone in its Group and has no thread of its own: Run and Step run it on the goroutine
// that calls them. It is meant for tests and for programs that need one scheduler; servers use [Run] or [NewGroup].
// Config.Schedulers is ignored.
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
		stride: 1,
	}
	s.self.s, s.due = s, never
	s.users.Store(1)
	s.now = s.clock.Monotonic()
	s.Internals().SetIdler(newParker())
	return s
}

// Spawn adds a as a task; its first turn is in the next round. Spawn an action that keeps state from turn to turn only
// once: a second task would take its wake-ups, and one of the two might wait for ever. Spawn panics if a is nil or the
// scheduler is closed. It is for the scheduler's thread; another goroutine gives Post a function that spawns.
func (s *Scheduler) Spawn(a Action) {
	s.admit(a, 0)
	s.live++
}

// Install adds d as a demon; its first turn is in the next pass. It keeps Run from returning until it has finished.
// Install panics if d is nil or the scheduler is closed. It is for the scheduler's thread, usually in a set-up function.
func (s *Scheduler) Install(d Demon) {
	s.admit(d, isDemon)
	s.installed++
}

// Attach is [Scheduler.Install] for a monitor: a demon that wakes tasks when something happens. It does not keep Run
// from returning, since the tasks that wait do, and it stays when a shutdown drops everything else. Attach is for the
// scheduler's thread.
func (s *Scheduler) Attach(d Demon) {
	s.admit(d, isDemon|background)
}

// KeepRunning adds n, which may be negative, to a count that keeps Run from returning while it is above 0. It is for work
// that no task waits for, such as sending the last bytes of a connection.
func (s internals) KeepRunning(n int) {
	s.touch()
	if s.held+n < 0 {
		panic("act: KeepRunning taken back more often than given")
	}
	s.held += n
	if n < 0 {
		s.noteProgress()
	}
}

func (s *Scheduler) admit(a Action, f flags) {
	s.touch()
	if a == nil {
		panic("act: Spawn or Install of a nil action")
	}
	if s.closed {
		panic("act: Spawn or Install on a closed Scheduler")
	}
	if s.running != nil {
		f |= s.running.flags & last
	}
	if f&last != 0 {
		s.lasts++
	}
	t := s.slab.get(s)
	t.action, t.flags, t.left = a, f|untold, s.terms.turns
	if tr := s.trace; tr != nil && tr.Spawned != nil {
		tr.Spawned(t)
	}
	s.enqueue(t)
}

// enqueue makes t ready, after all others of its kind.
func (s *Scheduler) enqueue(t *Task) {
	t.state = ready
	if t.flags&isDemon == 0 {
		s.ready.push(t)
	} else {
		s.demons.push(t)
	}
}

// Group returns the Group that s belongs to. Any goroutine.
func (s *Scheduler) Group() *Group { return s.group }

// Index returns the index of s in its Group, from 0. Any goroutine.
func (s *Scheduler) Index() int { return s.index }

// Clock returns the Group's [Clock]; [Scheduler.Now] is the cached time of it. Any goroutine.
func (s *Scheduler) Clock() Clock { return s.clock }

// Logger returns [Config].Logger, or the default logger if that is nil. Any goroutine.
func (s *Scheduler) Logger() *zap.Logger { return s.logger }

// AtTurnEnd calls x.TurnEnd once, after the present turn has ended, even by a panic, and before its Directive is
// followed: a wake-up of its task counts for the Wait that it has returned. In a posted function it is called after all
// of the pass. Several are called in order. Between turns, TurnEnd comes after the next one.
func (s internals) AtTurnEnd(x interface{ TurnEnd() }) {
	s.touch()
	s.ends = append(s.ends, x)
}

// endTurn calls what AtTurnEnd has collected. Each is removed first: after a panic the rest can still be called.
func (s *Scheduler) endTurn() {
	for i := 0; i < len(s.ends); i++ { // a TurnEnd may add another
		x := s.ends[i]
		s.ends[i] = nil
		if x != nil {
			x.TurnEnd()
		}
	}
	s.ends = s.ends[:0]
}

// Here reports whether the caller is on the thread that is in Run or Step of s, within that call. Any goroutine. On systems
// other than Linux it returns false in a coroutine.
func (s internals) Here() bool {
	at := s.at.Load()
	return at != 0 && at == thread.ID()
}

var (
	// ErrClosed is returned by Run, Step, Post, Broadcast and On after the scheduler was closed.
	ErrClosed = errors.New("act: the scheduler is closed")
	// ErrDropped is the failure of a task that was dropped, as Trace.Ended gets it, and of a Child or Call that was
	// closed before it had finished.
	ErrDropped = errors.New("act: dropped before it had finished")

	// Programming errors.
	errRunning     = errors.New("act: already running")
	errStepped     = errors.New("act: the schedulers of this Group are Stepped, it does not Run")
	errWrongThread = errors.New("act: the scheduler has coroutines that live on another thread")
	errLost        = errors.New("act: runtime.Goexit ended the goroutine of a scheduler") // which cannot be used any more
)

// Close drops what is left and closes the values of Locals, in reverse order of their making. From then on Post fails and
// Shutdown does nothing. Close returns a *shutdown.Cut if something was left, else nil. Further calls return nil. It fails
// in a turn, and while coroutines live on another thread.
func (s *Scheduler) Close() error {
	if s.closed {
		return nil
	}
	if s.inside {
		return errRunning
	}
	runtime.LockOSThread() // as in Run: a coroutine needs the thread to be locked as often as when it was made
	defer runtime.UnlockOSThread()
	if err := s.rightThread(); err != nil {
		return err
	}
	s.closed = true
	s.posts.Close()
	s.forgetOrders()
	for n := s.orders.Close(); n != nil; n = n.Next() {
		s.group.spend(n.Of)
	}
	s.room.Announce()
	cut := s.left()
	s.endDraining()
	s.dropAll()
	eachLocal(s, s.close)
	s.made = nil
	s.slab.all(func(t *Task) { // the attached demons
		if t.state != abandoned {
			s.drop(t)
		}
	})
	for !s.handleEvents() {
	}
	for s.events = s.remoteEvents.Close(); !s.handleEvents(); {
	}
	s.tied = slices.DeleteFunc(s.tied, tied.Untie)
	s.letGo()
	if cut != nil {
		cut.Dropped = true
		return cut
	}
	return nil
}

// close closes c and logs its error.
func (s *Scheduler) close(c io.Closer) {
	if err := c.Close(); err != nil {
		s.logger.Warn("closing failed", zap.Error(err))
	}
}

// touch lets the race detector see a call from another goroutine: every method of the scheduler's thread writes this word.
func (s *Scheduler) touch() {
	if race.Enabled {
		s.word++
	}
}
