// Package chat is a line chat across schedulers: what one member says, all others read.
//
// Each scheduler has a room with the members whose connections it serves, and nobody else touches it. What
// is said in a room is heard there at once, and is posted to the rooms of the other schedulers. So there is
// no lock, and what one member says is read by everybody in the order in which it was said; what two members
// say on different schedulers is not read by everybody in the same order.
package chat

import (
	"slices"

	"github.com/daimon-go/daimon/act"
)

// room is the members on one scheduler.
type room struct {
	s       *act.Scheduler
	members []*member
}

var rooms = act.NewLocal(func(s *act.Scheduler) *room { return &room{s: s} })

func (r *room) enter(m *member) { r.members = append(r.members, m) }

func (r *room) leave(m *member) {
	r.members = slices.DeleteFunc(r.members, func(x *member) bool { return x == m })
}

// tell has everybody in the room hear line, but not who said it.
func (r *room) tell(line string, speaker *member) {
	for _, m := range r.members {
		if m != speaker {
			m.hear(line)
		}
	}
}

// message is a line on its way to the rooms of the other schedulers.
type message struct {
	line string
	next int // of the Group's schedulers
}

// passOn posts the message to the rooms where it has not been yet. It reports false when one of them cannot
// take more at present: on a scheduler's thread a Post to a full inbox does not wait.
func (x *message) passOn(from *act.Scheduler) bool {
	line, all := x.line, from.Group().Schedulers()
	for ; x.next < len(all); x.next++ {
		to := all[x.next]
		if to != from && !to.Post(func(s *act.Scheduler) { rooms.Get(s).tell(line, nil) }) {
			return false
		}
	}
	return true
}
