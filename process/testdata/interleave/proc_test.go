package process

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// msg is a message with its sender and what its receiver does.
type msg struct {
	from string
	n    int // the number of the message from this sender to this receiver, from 1
	do   func(p *Self[msg])
}

// proc is a process of a world, and its Action.
type proc struct {
	w     *world
	name  string
	core  *core
	ref   Ref[msg]
	first func(p *Self[msg]) // called in its first turn
	lazy  bool               // it receives one message in each turn
	spare int                // it leaves so many messages in its mailbox

	bounded bool // it does not reject

	here     *thread        // the thread that it runs on
	heard    map[string]int // the last message received, by sender
	numbers  map[string]int // the last message sent, by sender
	sent     int            // including those to an ended process
	received int
	orders   int
}

// spawn spawns a process during set-up.
func (w *world) spawn(name string, o Options, first func(p *Self[msg])) *proc {
	return w.spawnFrom(w.sys, name, o, first)
}

func (w *world) spawnFrom(from Sender, name string, o Options, first func(p *Self[msg])) *proc {
	p := &proc{w: w, name: name, first: first, heard: map[string]int{}, numbers: map[string]int{}}
	p.ref = Spawn(from, p, o)
	w.trackNew()
	w.returned()
	return p
}

// Act implements Action.
func (x *proc) Act(p *Self[msg]) act.Directive {
	if x.here != nil {
		x.w.fail("%s has a turn in %s and in %s at once", x.name, x.here.name, x.w.now.name)
	}
	x.here = x.w.now
	defer func() { x.here = nil }()
	x.w.note("the turn of %s", x.name)
	if f := x.first; f != nil {
		x.first = nil
		f(p)
	}
	for {
		if x.spare > 0 && len(p.out)-int(p.pos) <= x.spare {
			return act.Wait
		}
		m, ok := p.Receive()
		if !ok {
			return act.Wait
		}
		x.check(m)
		if m.do != nil {
			m.do(p)
		}
		if x.lazy {
			return act.Yield
		}
	}
}

func (x *proc) String() string { return x.name }

func (x *proc) check(m msg) {
	x.received++
	x.w.note("%s receives %s's %d", x.name, m.from, m.n)
	if m.n <= x.heard[m.from] {
		x.w.fail("%s receives %s's %d after its %d", x.name, m.from, m.n, x.heard[m.from])
	}
	x.heard[m.from] = m.n
	if m.from == "later" {
		x.w.pending--
	}
}

// later returns a message of a timer or an operation.
func (x *proc) later() msg {
	x.w.pending++
	return x.extra("later")
}

// extra returns a message that no bound refuses.
func (x *proc) extra(from string) msg {
	x.sent++
	x.numbers[from]++
	return msg{from: from, n: x.numbers[from]}
}

func (x *proc) dead() bool { return x.core.word.Peek()&states == dead }

// send sends on behalf of a thread or process.
func (w *world) send(from Sender, name string, to *proc, do func(p *Self[msg])) error {
	to.numbers[name]++
	m := msg{name, to.numbers[name], do}
	err := to.ref.Send(from, m)
	w.returned()
	w.of(to.core).arrived() // even if another thread has queued it
	if _, blocked := err.(act.Blocked); !blocked {
		to.sent++
	}
	return err
}

// give is send for a process in its turn.
func (x *proc) give(p *Self[msg], to *proc) {
	_ = x.w.send(p, x.name, to, nil)
}

// deliver is send for a goroutine that waits for room.
func (w *world) deliver(name string, to *proc) {
	for {
		err := w.send(w.sys, name, to, nil)
		b, ok := err.(*blockedSend)
		if !ok {
			return
		}
		var heard signal
		if b.join(&heard) != nil {
			w.await("room", func() bool { return heard > 0 })
		}
	}
}

// signal is a waiter that counts its calls.
type signal int

func (x *signal) roomFree(*runner) { *x++ }
func (x *signal) hasEnded() bool   { return false }

// checkIdle checks a process when all runners are idle, and returns 1 if it is alive.
func (x *proc) checkIdle() int {
	w, c := x.w, x.core
	word := c.word.Peek()
	left := x.left()
	switch {
	case word&locked != 0:
		w.fail("%s is locked for ever", x.name)
	case word&states == dead:
		return 0
	case word&states != sleeping:
		w.fail("%s is %s for ever", x.name, stateName(word&states))
	case c.home == 0:
		w.fail("%s sleeps, and is not listed", x.name)
	case word&blocked != 0 && c.rare.debts == 0:
		w.fail("%s waits for room for ever: there is enough", x.name)
	case word&blocked != 0:
		w.fail("%s waits for room for ever: %d mailboxes have none", x.name, c.rare.debts)
	case c.rare != nil && c.rare.debts != 0:
		w.fail("%s sleeps, and waits for room in %d mailboxes", x.name, c.rare.debts)
	case w.given && x.orders == 0:
		w.fail("%s was not told of the order", x.name)
	case left > x.spare:
		w.fail("%s sleeps, and has %d messages", x.name, left)
	case word&signals != 0:
		w.fail("%s sleeps, and has signals: %s", x.name, w.of(c).show(uint64(word)))
	case word&roomWanted != 0 && left == 0:
		w.fail("%s sleeps, and a sender waits for room in its mailbox, which is empty", x.name)
	case c.owner.Peek() != 0:
		w.fail("%s sleeps, and its owner is queue %d", x.name, c.owner.Peek()-1)
	}
	return 1
}

// left returns the number of messages in the mailbox.
func (x *proc) left() int {
	p := x.core.body.(*Self[msg])
	return len(p.out) - int(p.pos) + len(p.in)
}

// Stop implements Stopper.
func (x *proc) Stop(*Self[msg], shutdown.Order) {
	if x.orders++; x.orders > 1 {
		x.w.fail("%s is told of one order twice", x.name)
	}
}

// onThread is the Sender of a task.
type onThread struct{ *loop }

func (x onThread) Scheduler() *act.Scheduler { return x.s }
