package process

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
)

// Config is how a System is made. The zero Config is good.
type Config struct {
	// Limit bounds the messages in the mailbox of a process that says nothing else; 0 means 1024, Unbounded none.
	Limit int
	// Messages bounds those that a process receives in a turn; 0 means 16.
	Messages int
	// Turn bounds those that are received on a reactor before it looks at its sockets and timers again; 0 means 64.
	// When that takes more than a millisecond it is made shorter, down to one.
	Turn int
}

// System has processes on the reactors of a Group. Its methods may be called on any goroutine, unless they say
// otherwise.
type System struct {
	cfg      resolved
	mu       sync.Mutex // of set-up, and of who waits for quiescence
	group    *act.Group
	reactors []*reactor
	joined   atomic.Bool // group and reactors are there
	idle     idlers
	closed   word
	graves   sync.Mutex // of endAll
	burying  word       // all are being ended

	census  []census
	foreign foreign
	pending counter // alarms and errands that will bring something by themselves
	coming  counter // processes that are about to be in a queue
	waiting []*future.Future[struct{}]
	awaited word // 1: there are some
}

// resolved is a Config with its meanings.
type resolved struct {
	Limit, Messages int32
	Turn            int
}

// foreign counts what no reactor does.
type foreign struct {
	turn    word // whose queue is next
	made    counter
	ended   counter
	dropped counter
}

// New returns a System, which runs nothing before Setup. It panics on a Config that means nothing.
func New(cfg Config) *System {
	if cfg.Limit < Unbounded || cfg.Messages < 0 || cfg.Turn < 0 {
		panic("process: a Config with a negative bound")
	}
	sys := &System{cfg: resolved{int32(min(cfg.Limit, most)), int32(min(cfg.Messages, most)), min(cfg.Turn, most)}}
	if cfg.Limit == 0 {
		sys.cfg.Limit = 1024
	}
	if cfg.Limit == Unbounded {
		sys.cfg.Limit = 0
	}
	if cfg.Messages == 0 {
		sys.cfg.Messages = 16
	}
	if cfg.Turn == 0 {
		sys.cfg.Turn = 64
	}
	return sys
}

// most is more than any bound needs to be.
const most = 1 << 30

func (sys *System) limit(own int) int32 {
	switch {
	case own == 0:
		return sys.cfg.Limit
	case own == Unbounded:
		return 0
	case own < 0:
		panic("process: a negative Limit")
	}
	return int32(min(own, most))
}

// Errors of Setup.
var (
	ErrSecondSystem = errors.New("process: the Group has a System already")
	ErrSecondGroup  = errors.New("process: the System is in another Group already")
)

// Setup is a set-up function for a Group, for each of its schedulers: it puts the System there. A Group has one System
// at most. What is spawned before Run begins, in a set-up function behind this one, has its first turns when all of
// them have been called. A Group that is run again is given it again: processes that sleep hold each Run.
func (sys *System) Setup(s *act.Scheduler) error {
	if err := sys.join(s.Group()); err != nil {
		return err
	}
	here, r := places.Get(s), sys.reactors[s.Index()]
	switch here.reactor {
	case nil:
		here.reactor = r
		r.present.Store(true)
		s.Attach(r)
	case r: // of an earlier Run, whose order is spent
		r.order.Store(nil)
		r.dropping.Store(false)
	default:
		return ErrSecondSystem
	}
	r.inRun.Store(true)
	r.hold() // until it has looked
	r.getUp()
	return nil
}

func (sys *System) join(g *act.Group) error {
	sys.mu.Lock()
	defer sys.mu.Unlock()
	if sys.group == g {
		return nil
	}
	if sys.group != nil {
		return ErrSecondGroup
	}
	sys.group = g
	all := g.Schedulers()
	sys.census = make([]census, len(all))
	for i, s := range all {
		r := &reactor{sys: sys, s: s, budget: sys.cfg.Turn}
		r.queue.id = uint32(i + 1)
		sys.reactors = append(sys.reactors, r)
	}
	sys.joined.Store(true)
	return nil
}

// whereabouts finds the System and the reactor of a Sender.
func whereabouts(from Sender) (*System, *reactor) {
	if sys, ok := from.(*System); ok {
		return sys, nil
	}
	r := places.Get(from.Scheduler()).reactor
	if r == nil {
		panic("process: the Group has no System: call its Setup in a set-up function")
	}
	return r.sys, r
}

// Scheduler is nil: a System is a Sender for those who are in no turn.
func (sys *System) Scheduler() *act.Scheduler { return nil }

// Stats are counts since the System was made.
type Stats struct {
	Alive   int64 // processes
	Spawned int64
	Ended   int64
	Dropped int64 // messages to the dead, to those with Drop and no room, and those that somebody had when it ended
	Handed  int64 // messages that were handed on
	Stolen  int64 // processes that went to another reactor because that had nothing to do
}

// Stats counts. While processes run, the numbers are of somewhat different moments.
func (sys *System) Stats() (n Stats) {
	if !sys.joined.Load() {
		return n
	}
	n.Ended = sys.foreign.ended.Load()
	for _, r := range sys.reactors { // before those who were made, of whom are never fewer
		n.Ended += r.ended.Load()
	}
	n.Spawned, n.Dropped = sys.foreign.made.Load(), sys.foreign.dropped.Load()
	for _, r := range sys.reactors {
		n.Spawned += r.made.Load()
		n.Dropped += r.dropped.Load()
		n.Handed += r.handed.Load()
		n.Stolen += r.stolen.Load()
	}
	n.Alive = n.Spawned - n.Ended
	return n
}

// number counts a new process, and gives it its number.
func (sys *System) number(c *core, r *reactor) {
	if !sys.joined.Load() {
		panic("process: Spawn before Setup")
	}
	n, of := int64(0), len(sys.reactors)
	if r == nil {
		n = sys.foreign.made.Add(1)
	} else {
		n, of = add(&r.made, 1), r.s.Index()
	}
	c.id = uint64(n)*uint64(len(sys.reactors)+1) + uint64(of)
}

// count counts a message that is dropped.
func (sys *System) count(r *reactor) {
	if r == nil {
		sys.foreign.dropped.Add(1)
	} else {
		add(&r.dropped, 1)
	}
}

// runs tells whether r is a reactor of sys, and is not just having all processes ended.
func (sys *System) runs(r *reactor) bool {
	return r != nil && r.sys == sys && sys.burying.Load() == 0
}

// schedule has c run somewhere, which is new; r is the reactor of this thread, if it is one.
func (sys *System) schedule(c *core, r *reactor) {
	if sys.runs(r) {
		r.enqueue(c, r.getUp())
	} else {
		sys.coming.Add(1)
		sys.scatter(c)
	}
}

// scatter is schedule on a goroutine, of one that is coming. c goes to an idle reactor, or to each in turn; to another
// one if the queue is locked there. An idle one is woken in any case: it is not on the stack any more. If c comes to one
// that is in a turn, which may be long, or not in Run, whoever is idle now is woken as well, and steals c.
func (sys *System) scatter(c *core) {
	x := sys.idle.pop()
	if x == nil {
		x = sys.reactors[sys.foreign.turn.Add(1)%uint32(len(sys.reactors))]
	}
	y := x.put(c)
	sys.coming.Add(-1) // before somebody is woken by it, who may find that nothing is left to do
	y.ring()
	if y != x {
		x.ring()
	}
	if y.busy.Load() == 0 && y.inRun.Load() {
		return // it looks at its queue first, or has others look when it leaves
	}
	if z := sys.idle.pop(); z != nil {
		z.ring()
	}
}

// put puts c into the first queue behind that of index that is not locked.
func (sys *System) put(c *core, index int) *reactor {
	for looks := 0; ; looks++ {
		index = (index + 1) % len(sys.reactors)
		if ok, _ := sys.reactors[index].queue.tryEnqueue(c); ok {
			return sys.reactors[index]
		}
		patience(looks)
	}
}

// running is how many reactors are in Run, of those that have been set up.
func (sys *System) running() (n int) {
	for _, r := range sys.reactors {
		if r.inRun.Load() {
			n++
		}
	}
	return n
}

// quiet is called when nothing is ready anywhere and nobody works, by the last to find that out.
func (sys *System) quiet(r *reactor, now moment, landed bool) {
	if landed {
		sys.announce(now)
	}
	if !r.ordered && sys.Stats().Alive > 0 {
		return
	}
	r.letGo()
	for _, other := range sys.reactors {
		if other.holding.Load() {
			other.ring() // it lets go when it is the last
		}
	}
}

// empty tells whether nothing is queued anywhere, or was when each was looked at.
func (sys *System) empty() bool {
	return !slices.ContainsFunc(sys.reactors, func(r *reactor) bool { return !r.queue.empty() })
}

// done is called when an alarm or an errand has brought what it brings, or is not to bring anything any more.
func (sys *System) done() {
	if sys.pending.Add(-1) > 0 || sys.awaited.Load() == 0 {
		return
	}
	for _, r := range sys.reactors {
		if r.inRun.Load() {
			r.ring() // somebody has to see it
			return
		}
	}
}

// announce tells those who wait for it that the System is quiescent, if it still is, and nobody is on the way into a
// queue, who rings when he is there: who has sent something since, and then asked, is not to be told of the time before.
func (sys *System) announce(now moment) {
	sys.resolve(func() bool { return sys.coming.Load() == 0 && sys.empty() && now == sys.idle.now() })
}

// resolve tells those who wait for it that the System is quiescent, if it is: nobody begins to wait meanwhile.
func (sys *System) resolve(quiet func() bool) {
	sys.mu.Lock()
	var waiting []*future.Future[struct{}]
	if quiet() {
		waiting, sys.waiting = sys.waiting, nil
		sys.awaited.Store(0)
	}
	sys.mu.Unlock()
	for _, f := range waiting {
		_ = f.Resolve(struct{}{})
	}
}

// Quiescent returns a future that is resolved as soon as the System is quiescent: all processes sleep, all reactors
// have nothing of theirs to do, and no alarm and nothing that one awaits is under way; so nothing happens any more
// before somebody else sends something; what others are just sending may still be on its way. Tasks and connections do
// not count, and neither do processes that wait for room in a mailbox: they sleep as the others do. It
// is seen in Run; a System that is closed is quiescent.
func (sys *System) Quiescent() *future.Future[struct{}] {
	if !sys.joined.Load() {
		panic("process: Quiescent before Setup")
	}
	f := future.New[struct{}](sys.group.Schedulers()[0])
	sys.mu.Lock()
	sys.waiting = append(sys.waiting, f)
	sys.awaited.Store(1)
	sys.mu.Unlock()
	for _, r := range sys.reactors {
		r.ring() // the last to find nothing says so
	}
	if sys.over() {
		sys.resolve(func() bool { return true })
	}
	return f
}
