// Package chat is a line chat with rooms: what one member says, all others in the room read.
//
// A room is a process. It is created for its first member, ends when the last one leaves, and runs on whichever scheduler
// is free. A connection is a task, and stays on its scheduler.
//
//	            messages; a member that sends too fast waits while the room's mailbox is full
//	connection ───────────────────────────────────────────────────────────────────────────────▶ room
//	 (a task)  ◀───────────────────────────────────────────────────────────────────────────  (a process)
//	            a linked list of lines; the room appends one and wakes the members' tasks
//
// So all members of a room read the same lines in the same order, and each line is stored once, until all have read it.
// Members that do not read hold up nobody; one that is a thousand lines behind is disconnected. If a room panics, its
// members create it again. On an order to end, each room ends after the messages that were sent before, and tells its
// members.
package chat

import (
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

// Service accepts the members' connections. Its handler is Member.
type Service interface {
	Setup(*act.Scheduler) error
	Addr() net.Addr
}

// Chat is a Service with rooms for its members. It is used by one Group.
type Chat struct {
	Service
	sys  *process.System
	hall process.Ref[query]
	most int // messages in the mailbox of a room
}

// New returns a Chat for the members that a service accepts.
func New(members Service) *Chat {
	return &Chat{Service: members, sys: process.New(process.Config{}), most: 64}
}

// chats holds the Chat of each scheduler.
var chats = act.NewLocal(func(*act.Scheduler) *place { return &place{} })

type place struct{ *Chat }

// Setup is a set-up function that starts the hall and the service.
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
