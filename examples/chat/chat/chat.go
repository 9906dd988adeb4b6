// Package chat is a line chat with rooms: what one member says, all others in the room read.
//
// A room is a process: it runs on whichever reactor has nothing else to do, is made for the first who wants to come in,
// and ends with the last who leaves. A connection is a task, and stays on its reactor.
//
//	               messages: who speaks too fast waits while the mailbox of the room is full
//	connection ─────────────────────────────────────────────────────────────────────────────▶ room
//	 (a task)  ◀───────────────────────────────────────────────────────────────────────── (a process)
//	               lines: each leads to the next. The room adds one and rings, the tasks read on
//
// So everybody in a room reads the same lines in the same order, each line is kept once, until all have read it, and
// nobody waits for those who do not read: who is a thousand lines behind is cut off. A room that panics is made anew with
// those who were in it. On an order each room ends behind what was said before, and everybody hears of that.
package chat

import (
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// Service is what members come by: a service with the handler Member.
type Service interface {
	Setup(*act.Scheduler) error
	Addr() net.Addr
}

// Chat is a Service with rooms for its members. It is for one Group.
type Chat struct {
	Service
	sys  *process.System
	hall process.Ref[query]
	most int // messages on their way to a room
}

// New makes the rooms for those who come by a service.
func New(members Service) *Chat {
	return &Chat{Service: members, sys: process.New(process.Config{}), most: 64}
}

// chats has the Chat of each scheduler.
var chats = act.NewLocal(func(*act.Scheduler) *place { return &place{} })

type place struct{ *Chat }

// Setup is a set-up function that installs the service and what it needs.
func (c *Chat) Setup(s *act.Scheduler) error {
	if err := c.sys.Setup(s); err != nil {
		return err
	}
	if s.Index() == 0 {
		h := &hall{rooms: map[string]process.Ref[message]{}, most: c.most}
		c.hall = process.Spawn(c.sys, process.Handler[query](func(p *process.Self[query], q query) { q.at(h, p) }),
			process.Options{Name: "the hall"})
	}
	chats.Get(s).Chat = c
	return c.Service.Setup(s)
}
