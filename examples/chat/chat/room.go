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

// line is one line of the conversation in a room, and an element of a linked list. The room appends; the members follow
// the list, on their own schedulers and as fast as their connections take it. A line that all have read is garbage.
type line struct {
	text string
	by   *member // does not get the line itself
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

// Stop ends the room after the messages that are in its mailbox.
func (r *room) Stop(p *process.Self[message], _ shutdown.Order) { _ = p.Ref().Send(p, closing{}) }

// Close tells the remaining members that the room has ended. It is called after a panic as well.
func (r *room) Close() error {
	last := &line{text: "* " + r.name + " has broken down\n", end: roomEnds}
	if r.closing {
		last = &line{text: over, end: chatEnds}
	}
	r.add(last)
	return nil
}

// add appends l and wakes all members.
func (r *room) add(l *line) {
	r.last.next.Store(l)
	r.last = l
	for _, m := range r.members {
		m.bell.Wake()
	}
}

// enter asks for admission. The answer is the line after which the member begins to read.
type enter struct {
	by    *member
	reply process.Reply[*line]
}

func (x enter) at(r *room, p *process.Self[message]) {
	if x.reply.Send(p, r.last) { // otherwise the member has gone
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
