package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

const (
	// crowd is how many members a room may have in which each coming and going is told. It bounds lists of names.
	crowd = 100
	// countEvery is how often the members of a larger room are told how many they are, while that changes.
	countEvery = time.Second
)

// room is a process.
type room struct {
	name     string
	seats    []*seat          // in the order of coming
	names    map[string]*seat // in lower case
	last     *line
	rung     *line // the last line for which the members were woken
	crowded  bool  // the members do not know who has come and left
	counting bool  // they will be told how many they are
	closing  bool

	self  atomic.Pointer[process.Self[message]]
	stray atomic.Bool // somebody has left without a message
}

func newRoom(name string) *room {
	first := &line{}
	return &room{name: name, names: map[string]*seat{}, last: first, rung: first}
}

// seat is the place of a member in a room, which both use.
type seat struct {
	name string
	bell act.AtomicWaker // the room rings it to wake the member's task
	room atomic.Pointer[room]
	gone atomic.Bool
}

// desert leaves the room without a message. It never fails and never waits.
func (s *seat) desert() {
	s.gone.Store(true)
	if r := s.room.Load(); r != nil {
		r.stray.Store(true)
		r.self.Load().Poke()
	}
}

// line is an event of a room, and an element of a linked list. The room appends; the members follow the list, on their own
// schedulers and as fast as their connections take it. A line that all have read is garbage.
type line struct {
	event
	by   *seat // who has said it
	end  end
	next atomic.Pointer[line]
}

// end says what ends with the last line of a room.
type end uint8

const (
	roomEnds end = iota + 1
	chatEnds
)

// leads reports whether at least that many lines follow l.
func (l *line) leads(lines int) bool {
	for range lines {
		if l = l.next.Load(); l == nil {
			return false
		}
	}
	return true
}

// message is a message to a room.
type message interface {
	at(r *room, p *process.Self[message])
}

// Act ends when the last member has left. Members whose request to enter is still in the mailbox get an error, and ask
// the hall for a new room.
func (r *room) Act(p *process.Self[message]) act.Directive {
	r.self.Store(p)
	for {
		m, ok := p.Receive()
		if !ok {
			break
		}
		if m.at(r, p); len(r.seats) == 0 || r.closing {
			return act.Done
		}
	}
	if r.stray.Swap(false) {
		for _, s := range slices.Clone(r.seats) {
			if s.gone.Load() {
				r.left(p, s)
			}
		}
		if len(r.seats) == 0 {
			return act.Done
		}
	}
	r.ring()
	return act.Wait
}

// Stop ends the room after the messages that are in its mailbox.
func (r *room) Stop(p *process.Self[message], _ shutdown.Order) { _ = p.Ref().Send(p, closing{}) }

// Close tells the remaining members that the room has ended. It is called after a panic as well.
func (r *room) Close() error {
	last := &line{event: tell("* "+r.name+" has broken down\n", news{Type: "broken"}), end: roomEnds}
	if r.closing {
		last = &line{event: over, end: chatEnds}
	}
	r.add(last)
	r.ring()
	return nil
}

// add appends l.
func (r *room) add(l *line) {
	r.last.next.Store(l)
	r.last = l
}

// ring wakes all members if there is a new line: once for all lines of a turn.
func (r *room) ring() {
	if r.rung == r.last {
		return
	}
	r.rung = r.last
	for _, s := range r.seats {
		s.bell.Wake()
	}
}

// enter asks for admission.
type enter struct {
	seat  *seat
	reply process.Reply[entry]
}

type entry struct {
	after   *line // the member begins to read after it; nil: its name is taken
	welcome event
}

func (x enter) at(r *room, p *process.Self[message]) {
	name := strings.ToLower(x.seat.name)
	if r.names[name] != nil {
		x.reply.Send(entry{})
		return
	}
	x.seat.room.Store(r)
	r.seats, r.names[name] = append(r.seats, x.seat), x.seat
	text := "* " + x.seat.name + " has come to " + r.name + "\n"
	welcome := tell(text, news{Type: "welcome", Room: r.name, Name: x.seat.name, Here: len(r.seats), Names: r.list(crowd)})
	if !x.reply.Send(entry{r.last, welcome}) { // the member has gone
		r.remove(x.seat)
		return
	}
	r.changed(p, &line{event: tell(text, news{Type: "came", Name: x.seat.name, Here: len(r.seats)}), by: x.seat})
}

type leave struct{ seat *seat }

func (x leave) at(r *room, p *process.Self[message]) { r.left(p, x.seat) }

func (r *room) left(p *process.Self[message], s *seat) {
	if r.remove(s) {
		text := "* " + s.name + " has left " + r.name + "\n"
		r.changed(p, &line{event: tell(text, news{Type: "left", Name: s.name, Here: len(r.seats)})})
	}
}

// remove reports whether s was there.
func (r *room) remove(s *seat) bool {
	i := slices.Index(r.seats, s)
	if i < 0 {
		return false
	}
	r.seats = slices.Delete(r.seats, i, i+1)
	delete(r.names, strings.ToLower(s.name))
	return true
}

// changed tells the members l, that somebody has come or left. A crowd is told the number alone, and later.
func (r *room) changed(p *process.Self[message], l *line) {
	switch {
	case len(r.seats) > crowd:
		if r.crowded = true; !r.counting {
			r.counting = true
			p.After(countEvery, count{})
		}
	case r.crowded:
		r.crowded = false
		r.count()
	default:
		r.add(l)
	}
}

type count struct{}

func (count) at(r *room, _ *process.Self[message]) {
	r.counting = false
	r.count()
}

func (r *room) count() {
	here := news{Type: "here", Here: len(r.seats)}
	if len(r.seats) <= crowd {
		here.Names = r.list(crowd)
	}
	r.add(&line{event: tell("", here)})
}

// list returns the names of the first members, at most that many.
func (r *room) list(most int) (names []string) {
	for _, s := range r.seats[:min(most, len(r.seats))] {
		names = append(names, s.name)
	}
	return names
}

type say struct {
	by   *seat
	text string
}

func (x say) at(r *room, _ *process.Self[message]) {
	r.add(&line{event: tell(x.by.name+": "+x.text+"\n", news{Type: "said", Name: x.by.name, Text: x.text}), by: x.by})
}

type who struct{ reply process.Reply[event] }

func (x who) at(r *room, p *process.Self[message]) {
	names := r.list(crowd)
	text := "* in " + r.name + ": " + strings.Join(names, ", ")
	if more := len(r.seats) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	x.reply.Send(tell(text+"\n", news{Type: "names", Here: len(r.seats), Names: names}))
}

type closing struct{}

func (closing) at(r *room, _ *process.Self[message]) { r.closing = true }
