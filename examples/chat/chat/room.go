package chat

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// room is a process.
type room struct {
	name    string
	members []*member
	last    *line
	closing bool
}

func newRoom(name string) *room { return &room{name: name, last: &line{}} }

// line is one of those that were said in a room. The room adds the next; the members read on, on their own reactors and
// as fast as their connections take it. What all have read nobody has any more.
type line struct {
	text string
	by   *member // who does not hear it
	end  end
	next atomic.Pointer[line]
}

// end is what the last line of a room is the end of.
type end uint8

const (
	roomEnds end = iota + 1
	chatEnds
)

// leads tells whether there are so many lines behind l.
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

// Act ends with the last member. Those who have asked to come in behind that hear that nobody is there, and ask the hall
// for another.
func (r *room) Act(p *process.Self[message]) act.Directive {
	for {
		m, ok := p.Receive()
		if !ok {
			return act.Wait
		}
		m.at(r, p)
		if len(r.members) == 0 || r.closing {
			return act.Done
		}
	}
}

// Stop has the room end behind what was said before.
func (r *room) Stop(p *process.Self[message], _ shutdown.Order) { _ = p.Ref().Send(p, closing{}) }

// Close tells those who are still here that the room has ended, however it has: a panic comes here, too.
func (r *room) Close() error {
	last := &line{text: "* " + r.name + " has broken down\n", end: roomEnds}
	if r.closing {
		last = &line{text: over, end: chatEnds}
	}
	r.add(last)
	return nil
}

// add has everybody hear l.
func (r *room) add(l *line) {
	r.last.next.Store(l)
	r.last = l
	for _, m := range r.members {
		m.bell.Ring()
	}
}

// enter asks to be let in, and is answered with the line behind which the member reads on.
type enter struct {
	by    *member
	reply process.Reply[*line]
}

func (x enter) at(r *room, p *process.Self[message]) {
	if x.reply.Send(p, r.last) { // else it has gone
		r.members = append(r.members, x.by)
		r.add(&line{text: "* " + x.by.name + " has come to " + r.name + "\n"})
	}
}

type leave struct{ by *member }

func (x leave) at(r *room, _ *process.Self[message]) {
	if i := slices.Index(r.members, x.by); i >= 0 {
		r.members = slices.Delete(r.members, i, i+1)
		r.add(&line{text: "* " + x.by.name + " has left " + r.name + "\n"})
	}
}

type say struct {
	by   *member
	text string
}

func (x say) at(r *room, _ *process.Self[message]) {
	r.add(&line{text: x.by.name + ": " + x.text + "\n", by: x.by})
}

type who struct{ reply process.Reply[string] }

func (x who) at(r *room, p *process.Self[message]) {
	var names []string
	for _, m := range r.members {
		names = append(names, m.name)
	}
	x.reply.Send(p, "* in "+r.name+": "+strings.Join(names, ", ")+"\n")
}

type closing struct{}

func (closing) at(r *room, _ *process.Self[message]) { r.closing = true }
