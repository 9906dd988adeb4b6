// This is how the chat works. What one member says, all others in the room read. A member is on a terminal, with a protocol of
// lines, or on the page, with WebSocket. The rooms are the same.
//
// A room is a process. It is created for its first member, ends when the last one leaves, and runs on whichever scheduler
// is free. A connection is a task, and stays on its scheduler.
//
//	            wishes; a member that sends too fast waits while the room's mailbox is full
//	connection ────────────────────────────────────────────────────────────────────────────▶ room
//	 (a task)  ◀────────────────────────────────────────────────────────────────────────  (a process)
//	            a linked list of lines; the room appends and wakes the members' tasks
//
// So all members of a room read the same lines in the same order. Each line is made once, as text for terminals and as a prepared
// message for pages, and stored once, until all have read it. A member that does not read holds up no other; one that is a
// thousand lines behind is disconnected. If a room panics, its members create it again. On a shutdown request each room ends
// after the messages that were sent before, and tells its members; pages are closed with code 1001, and connect again later. So
// in an upgrade nobody stays in a room of the old process while others talk in one of the new process.
//
// The room could also broadcast each line to the schedulers, which push it to their own members, as the example of websocket.Conn.Push does.
// That saves each member a turn for a line. But a broadcast may be refused: so the room would wait for the slowest inbox,
// even with its last words. And a line to 10,000 members would be one long turn on each scheduler, in which nobody is read
// from. With the list a room never waits, and one rule serves both protocols. Waking 10,000 tasks takes a room less than a
// millisecond, once for all lines of a turn. The sends take many times as long, and are the same either way.
//
// Each coming and going is told to the others only in rooms of up to a hundred members. In a larger one all get the number
// of members, once a second while it changes; names come on demand, up to a hundred.

package main

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// Chat has the rooms. It is a service, which is used by one Group, together with services that accept the members'
// connections: their handlers are Member, and that of a web server Site.
type Chat struct {
	sys   *process.System
	hall  process.Ref[query]
	most  int           // messages in the mailbox of a room
	every time.Duration // a member that says more than one line in that time, after the first ones, is too fast; 0: none is
}

// New returns a Chat without rooms.
func New() *Chat {
	return &Chat{sys: process.New(), most: 64, every: time.Second / 2}
}

// Setup is a set-up function that starts the hall.
func (c *Chat) Setup(s *act.Scheduler) error {
	if err := c.sys.Setup(s); err != nil || s.Index() > 0 {
		return err
	}
	h := &hall{rooms: map[string]process.Ref[message]{}, most: c.most}
	c.hall = process.Spawn(c.sys, process.Handler[query](func(p *process.Self[query], q query) { q.at(h, p) }),
		process.Options{Name: "the hall"})
	return nil
}
