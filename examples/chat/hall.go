package main

import "github.com/daimon-go/daimon/process"

// hall is the process that knows all rooms.
type hall struct {
	rooms map[string]process.Ref[message]
	most  int // messages in the mailbox of a room
}

// query is a message to the hall.
type query interface {
	at(h *hall, p *process.Self[query])
}

// find asks for a room. The hall creates it if there is none.
type find struct {
	name  string
	but   process.Ref[message] // a room that has ended, which the hall may not know yet
	reply process.Reply[process.Ref[message]]
}

func (q find) at(h *hall, p *process.Self[query]) {
	if there, ok := h.rooms[q.name]; ok && there != q.but {
		q.reply.Send(there)
		return
	}
	// The process does not have the name of the room: a client has chosen that, and it would be on the pages of package inspect.
	fresh := process.Spawn(p, makeRoom(q.name), process.Options{Limit: h.most})
	if !q.reply.Send(fresh) {
		fresh.Kill() // the member no longer waits for the answer, so nobody will enter
		return
	}
	h.rooms[q.name] = fresh
	process.Watch(p, fresh, func(n process.Notice) query { return ended{q.name, n} })
}

// ended says that a room has ended.
type ended struct {
	name string
	process.Notice
}

func (q ended) at(h *hall, _ *process.Self[query]) {
	if h.rooms[q.name] == q.Of { // there may be a new one by now
		delete(h.rooms, q.name)
	}
}

// makeRoom creates a room. It is a variable so that a test can replace it.
var makeRoom = aRoom

func aRoom(name string) process.Action[message] { return newRoom(name) }
