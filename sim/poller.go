package sim

import (
	"slices"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/netpoll"
)

// poller models edge-triggered epoll(7): a list of descriptors that have changed. What is ready is determined when a
// descriptor is reported, so an event may report more than its cause, or may not be reported at all.
type poller struct {
	k      *kernel
	r      *runner
	files  [2]int // its descriptors
	list   fifo[*registration]
	all    []*registration // what it watches
	late   []lateEvent
	waits  uint64 // calls of Wait
	closed bool
}

// registration is a descriptor that a poller watches.
type registration struct {
	p        *poller
	f        *file
	tag      uint64
	want     netpoll.Ready
	listed   bool
	gone     bool
	held     bool          // a delayed event is coming, and with it what happens meanwhile
	coming   int           // delayed events
	reported netpoll.Ready // what events have reported, minus what results of calls have revoked by the rule of package netpoll
	batch    uint64        // the Wait that reported last
	vain     int           // sends without room since the last event
}

// lateEvent is an event of a descriptor that is closed. It is due when the number is in use again.
type lateEvent struct {
	reg   *registration
	ready netpoll.Ready
	due   bool
}

// list puts r on the list, once, and wakes the scheduler.
func (r *registration) list() {
	if r.gone || r.p.closed || r.held {
		return
	}
	if !r.listed {
		r.listed = true
		r.p.list.push(r)
	}
	r.p.r.wake()
}

// later lists r after a while.
func (r *registration) later(least, most time.Duration) {
	w := r.p.k.w
	r.coming++
	w.after(w.lasts(least, most), func() {
		r.coming--
		r.held = false
		r.list()
	})
}

// level returns what is ready now.
func (r *registration) level() (ready netpoll.Ready) {
	switch {
	case r.f.fake != nil:
		return r.f.fake.ready & r.want
	case r.f.packets != nil:
		return r.f.packets.levels() & (r.want | netpoll.Error)
	}
	if r.want != netpoll.In|netpoll.Out {
		if len(r.f.l.queue) > 0 {
			return netpoll.In
		}
		return 0
	}
	return r.f.end.levels()
}

// levels returns what poll reports for the socket (tcp_poll, unix_poll). If it reports that there is no room, an event
// follows when there is.
func (e *end) levels() (ready netpoll.Ready) {
	if e.phase == connecting {
		return 0
	}
	if e.unread() > 0 {
		ready |= netpoll.In
	}
	if e.ended || e.phase == dead {
		ready |= netpoll.In | netpoll.PeerClosed
	}
	if e.writable() {
		ready |= netpoll.Out
	} else {
		e.out.refused = true
	}
	if e.err != 0 || e.phase == dead || e.ended && e.writeEnded {
		ready |= netpoll.Error
	}
	return ready
}

// Add and the following methods implement engine.Poller.
func (p *poller) Add(fd int, tag uint64, want netpoll.Ready) error {
	f := p.k.get(fd, "add")
	if p.closed || !p.k.has(fd) {
		return syscall.EBADF
	}
	err := p.add(f, tag, want)
	return p.k.w.result(f, "add to a poller", 0, err)
}

func (p *poller) add(f *file, tag uint64, want netpoll.Ready) error {
	w := p.k.w
	switch {
	case tag == ^uint64(0):
		panic("sim: the tag ^uint64(0) is reserved for the interrupt")
	case f.fake == nil && f.packets == nil && (want == netpoll.In|netpoll.Out) != (f.end != nil) || f.p != nil:
		w.Errorf("%v is added for %v, which it is not", f, want)
		return syscall.EINVAL
	case f.reg != nil || f.l != nil && f.l.watchedBy(p) != nil:
		w.Errorf("%v is added twice", f)
		return syscall.EEXIST
	case f.end != nil && w.fault(noMemory, f):
		f.end.c.disrupt()
		p.k.lacked = w.now
		return [...]syscall.Errno{syscall.ENOMEM, syscall.ENOSPC}[w.dice[faults].below(2)]
	}
	r := &registration{}
	switch {
	case f.l != nil:
		f.l.watches = append(f.l.watches, r)
	case f.packets != nil || f.ownReg.p != nil: // it may be added again
		f.reg = r
	default:
		r = &f.ownReg
		f.reg = r
	}
	*r = registration{p: p, f: f, tag: tag, want: want}
	if f.packets != nil {
		r.reported = netpoll.In // there may be some from before
	}
	p.all = append(p.all, r)
	if r.level() != 0 {
		r.list()
	}
	for i := range p.late {
		if g := &p.late[i]; g.reg.f.fd == f.fd {
			g.due = true
			p.r.wake()
		}
	}
	return nil
}

// Remove stops watching a shared listener, a socket for datagrams, or a connection that another scheduler is going to have.
// As in Linux, a wake-up of a listener that was not reported yet is lost, also for the other pollers that watch it.
func (p *poller) Remove(fd int) error {
	f := p.k.get(fd, "remove")
	if p.closed || !p.k.has(fd) {
		return syscall.EBADF
	}
	r := f.reg
	if f.l != nil {
		r = f.l.watchedBy(p)
	}
	if r == nil || r.p != p {
		return p.k.w.result(f, "remove from a poller", 0, syscall.ENOENT)
	}
	r.drop()
	return p.k.w.result(f, "remove from a poller", 0, nil)
}

// drop ends a registration. A fault keeps an event of it until the number is in use again.
func (r *registration) drop() {
	p := r.p
	w := p.k.w
	r.gone = true
	at, last := slices.Index(p.all, r), len(p.all)-1
	p.all[at] = p.all[last]
	p.all = slices.Delete(p.all, last, last+1)
	if r.f.reg == r {
		r.f.reg = nil
	}
	if l := r.f.l; l != nil {
		l.watches = slices.DeleteFunc(l.watches, func(o *registration) bool { return o == r })
	}
	open := (r.f.packets != nil || r.f.end != nil) && p.k.has(r.f.fd)
	if !p.closed && !open && w.draws(stale) {
		if len(p.late) == mostLate { // their numbers were not used again
			p.late = slices.Delete(p.late, 0, 1)
		}
		p.late = append(p.late, lateEvent{reg: r, ready: p.drawReady(r)})
	}
}

const mostLate = 64

// drawReady draws one of the possible events.
func (p *poller) drawReady(r *registration) netpoll.Ready {
	switch {
	case r.want == netpoll.Out:
		return netpoll.Out
	case r.want != netpoll.In|netpoll.Out:
		return netpoll.In
	case r.f.end != nil && r.f.end.phase == connecting: // Out would say that it is connected
		return netpoll.In
	}
	return [...]netpoll.Ready{netpoll.In, netpoll.Out, netpoll.In | netpoll.Out}[p.k.w.dice[faults].below(3)]
}

// Wait never waits: only the world lets time pass.
func (p *poller) Wait(events []netpoll.Event, atMost time.Duration) (int, error) {
	w := p.k.w
	switch {
	case p.closed:
		w.Errorf("%v: wait on a closed poller", p.r)
		return 0, syscall.EBADF
	case len(events) == 0:
		panic("sim: Wait needs room for at least one event")
	case atMost != 0:
		panic("sim: a scheduler wants to sleep, but only the world lets time pass")
	}
	p.waits++
	n := p.report(events)
	if len(p.list) > 0 {
		p.r.wake()
	}
	return n, nil
}

// report fills events and returns their number.
func (p *poller) report(events []netpoll.Event) (n int) {
	w := p.k.w
	p.late = slices.DeleteFunc(p.late, func(g lateEvent) bool {
		if !g.due || n == len(events) {
			return false
		}
		w.bites(stale, g.reg.f)
		events[n] = p.event(g.reg, g.ready)
		n++
		return true
	})
	var again []*registration
	for n < len(events) && len(p.list) > 0 {
		r := p.list.pop()
		r.listed = false
		ready := netpoll.Ready(0)
		if !r.gone {
			ready = r.level()
		}
		switch {
		case ready == 0:
			continue
		case w.fault(delayed, r.f):
			r.held = true
			r.later(latencyLow, 10*time.Millisecond)
			continue
		case w.fault(duplicate, r.f):
			again = append(again, r)
		}
		events[n] = p.event(r, ready)
		n++
	}
	if n < len(events) && len(p.all) > 0 && w.fault(spurious, p.k) {
		// One event for each Wait: a caller may handle them one by one, and learn from the first what the second denies.
		if r := p.all[w.dice[faults].below(len(p.all))]; r.batch != p.waits {
			events[n] = p.event(r, p.drawReady(r))
			n++
		}
	}
	for _, r := range again {
		r.list()
	}
	return n
}

func (p *poller) event(r *registration, ready netpoll.Ready) netpoll.Event {
	r.batch = p.waits
	if r.want != netpoll.In|netpoll.Out {
		p.k.futile = 0 // accepting again is right
	}
	r.reported |= ready
	r.vain = 0
	if ready&(netpoll.PeerClosed|netpoll.Error) != 0 {
		r.reported |= netpoll.In // a receive returns what has happened
	}
	kind := fdIsReady
	if r.gone {
		kind = fdWasReady
	}
	p.k.w.note(kind, r.f, int64(ready), 0)
	return netpoll.Event{Tag: r.tag, Ready: ready}
}

// Interrupt wakes the scheduler.
func (p *poller) Interrupt() { p.r.wake() }

func (p *poller) Close() error {
	if p.closed {
		p.k.w.Errorf("%v closes its poller twice", p.r)
		return syscall.EBADF
	}
	p.closed = true
	for len(p.all) > 0 {
		p.all[len(p.all)-1].drop()
	}
	for _, fd := range p.files {
		p.k.remove(fd)
	}
	p.list, p.late = nil, nil
	return nil
}
