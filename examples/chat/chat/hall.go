package chat

import "github.com/daimon-go/daimon/process"

// hall is the process that knows the rooms.
type hall struct {
	rooms map[string]process.Ref[message]
	most  int // messages on their way to a room
}

// query is a message to the hall.
type query interface {
	at(h *hall, p *process.Self[query])
}

// find asks for a room, and has one made if there is none.
type find struct {
	name  string
	but   process.Ref[message] // has ended, which the hall may not have heard yet
	reply process.Reply[process.Ref[message]]
}

func (q find) at(h *hall, p *process.Self[query]) {
	if there, ok := h.rooms[q.name]; ok && there != q.but {
		q.reply.Send(p, there)
		return
	}
	fresh := process.Spawn(p, makeRoom(q.name), process.Options{Name: "room " + q.name, Limit: h.most})
	if !q.reply.Send(p, fresh) {
		fresh.Kill() // who has asked does not wait any more, so nobody is going to come
		return
	}
	h.rooms[q.name] = fresh
	process.Watch(p, fresh, func(n process.Notice) query { return ended{q.name, n} })
}

// ended tells that a room has.
type ended struct {
	name string
	process.Notice
}

func (q ended) at(h *hall, _ *process.Self[query]) {
	if h.rooms[q.name] == q.Of { // there may be another by now
		delete(h.rooms, q.name)
	}
}

// makeRoom makes a room. It is a variable so that a test can make others.
var makeRoom = aRoom

func aRoom(name string) process.Action[message] { return newRoom(name) }
