package process

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
)

// System runs processes on the schedulers of a Group. Any goroutine may call its methods, unless they say otherwise.
type System struct {
	limit     int        // of the messages in a mailbox without a Limit of its own
	messages  int        // that a process receives in a turn at most. A turn in which the batch ends is shorter
	batch     int        // messages that processes receive before the scheduler polls its sockets and timers again
	mu        sync.Mutex // of join and Quiescent
	group     *act.Group
	runners   []*runner
	joined    atomic.Bool // group and runners are set
	idle      idleStack
	closed    word
	endMu     sync.Mutex // of endAll
	endingAll word       // 1: endAll is at work

	registries []registry // one for each runner
	outside    outside
	pending    counter // timers and operations under way
	inTransit  counter // processes that are about to be in a queue
	awaiting   []*future.Future[struct{}]
	awaited    word // 1: there are some
}

// outside counts events that happen on no runner's thread.
type outside struct {
	turn word // the index of the next runner, modulo their number
	counts
}

// counts are of one runner, or of all that happens on no runner's thread.
type counts struct{ made, ended, dropped, letters counter }

// countsOf returns the counts of r, which may be nil.
func (sys *System) countsOf(r *runner) *counts {
	if r == nil {
		return &sys.outside.counts
	}
	return &r.counts
}

// maxBound is more than any bound of a mailbox needs to be.
const maxBound = 1 << 30

// New returns a System. Give its [System.Setup] to a Group, which then runs processes.
func New() *System { return &System{limit: 1024, messages: 16, batch: 64} }

// Errors of Setup.
var (
	errSecondSystem = errors.New("process: the Group has a System already")
	errSecondGroup  = errors.New("process: the System is in another Group already")
)

// Setup is a set-up function of a Group: it adds the System to each scheduler. A Group has at most one System. Processes
// that a later set-up function spawns have their first turns when all set-up functions have returned. A Group that runs
// again needs Setup again; processes that sleep keep each Run from returning.
func (sys *System) Setup(s *act.Scheduler) error {
	if err := sys.join(s.Group()); err != nil {
		return err
	}
	here, r := locals.Get(s), sys.runners[s.Index()]
	switch here.runner {
	case nil:
		here.runner = r
		r.isSetUp.Store(true)
		s.Attach(r)
	case r: // of an earlier Run, whose order is no longer in force
		r.order.Store(nil)
		r.dropping.Store(false)
	default:
		return errSecondSystem
	}
	r.inRun.Store(true)
	r.keepRun() // until its first turn
	r.resume()
	return nil
}

func (sys *System) join(g *act.Group) error {
	sys.mu.Lock()
	defer sys.mu.Unlock()
	if sys.group == g {
		return nil
	}
	if sys.group != nil {
		return errSecondGroup
	}
	sys.group = g
	all := g.Schedulers()
	sys.registries = make([]registry, len(all))
	for i, s := range all {
		r := &runner{sys: sys, s: s, budget: sys.batch}
		r.queue.id = uint32(i + 1)
		sys.runners = append(sys.runners, r)
	}
	sys.joined.Store(true)
	return nil
}

// systemOf returns the System and the runner of a Sender.
func systemOf(from Sender) (*System, *runner) {
	if sys, ok := from.(*System); ok {
		return sys, nil
	}
	r := locals.Get(from.Scheduler()).runner
	if r == nil {
		panic("process: the Group has no System: call its Setup in a set-up function")
	}
	return r.sys, r
}

// Scheduler returns nil. It makes a System a [Sender], for goroutines that are not in a turn of a scheduler.
func (sys *System) Scheduler() *act.Scheduler { return nil }

// Alive returns how many processes are alive. While processes run, some that have just ended may count. It is 0 before
// the first Setup.
func (sys *System) Alive() int {
	if !sys.joined.Load() {
		return 0
	}
	ended := sys.outside.ended.Load()
	for _, r := range sys.runners { // before the spawned ones, of which there are never fewer
		ended += r.ended.Load()
	}
	made := sys.outside.made.Load()
	for _, r := range sys.runners {
		made += r.made.Load()
	}
	return int(made - ended)
}

// number counts a new process, and gives it its number.
func (sys *System) number(c *core, r *runner) {
	if !sys.joined.Load() {
		panic("process: Spawn before Setup")
	}
	n, of := int64(0), len(sys.runners)
	if r == nil {
		n = sys.outside.made.Add(1)
	} else {
		n, of = add(&r.made, 1), r.s.Index()
	}
	c.id = uint64(n)*uint64(len(sys.runners)+1) + uint64(of)
}

// runs reports whether r is a runner of sys, and is not just ending all processes.
func (sys *System) runs(r *runner) bool {
	return r != nil && r.sys == sys && sys.endingAll.Load() == 0
}

// schedule queues a new process. r is the runner of this thread, if it is one's.
func (sys *System) schedule(c *core, r *runner) {
	if sys.runs(r) {
		r.resume()
		r.enqueue(c)
	} else {
		sys.inTransit.Add(1)
		sys.enqueueAnywhere(c)
	}
	if sys.closed.Load() != 0 {
		sys.endLate(c)
	}
}

// enqueueAnywhere queues a process that is in transit, on no runner's thread: on an idle runner, else on each in turn, or
// on the next one whose queue is not locked. A runner that was popped is woken in any case, since it is no longer on the
// idle stack. If the chosen scheduler does not rest, it may be in a long turn of a task or a process; and it may not be in
// Run. Then another idle one is woken too, and steals.
func (sys *System) enqueueAnywhere(c *core) {
	x := sys.idle.pop()
	if x == nil {
		x = sys.runners[sys.outside.turn.Add(1)%uint32(len(sys.runners))]
	}
	y := x.put(c)
	resting := rests(y.s) && y.inRun.Load()
	sys.inTransit.Add(-1) // before wake: the runner that wakes may find that nothing is left to do
	y.wake()
	if y != x {
		x.wake()
	}
	if !resting {
		sys.idle.wakeOne()
	}
}
