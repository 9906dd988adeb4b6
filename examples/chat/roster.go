package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/topic"
)

const (
	// crowd is how many members a room may have in which each coming and going is told. It bounds lists of names.
	crowd = 100
	// countEvery is how often it is asked who is in a larger room.
	countEvery = time.Second
)

// roster is who is in a room.
type roster struct {
	ids   map[string]string // of all members, by name in lower case
	names []string          // at most a crowd of them
	count int
	until time.Duration // of a crowd: when it is asked again
}

func newRoster(members []topic.Member) (r roster) {
	r.ids, r.count = make(map[string]string, len(members)), len(members)
	for i, m := range members {
		r.ids[strings.ToLower(string(m.Info))] = m.ID
		if i < crowd {
			r.names = append(r.names, string(m.Info))
		}
	}
	slices.Sort(r.names)
	return r
}

// crowds has the crowds that members on a scheduler have asked for lately, by room.
var crowds = act.NewLocal(func(*act.Scheduler) map[string]roster { return map[string]roster{} })

// members returns an action that asks who is in a room, and calls then with the answer. In a crowd, all who ask within
// countEvery get the same one.
func (c *Chat) members(t *act.Task, room string, then func(roster)) act.Action {
	known, now := crowds.Get(t.Scheduler()), t.Scheduler().Now()
	if r := known[room]; now < r.until {
		return do(func() { then(r) })
	}
	answer := c.topics.Members(topicOf(room))
	return act.Seq(answer.Await(), do(func() {
		members, _ := answer.Value() // Await has had no error
		r := newRoster(members)
		if r.count > crowd {
			maps.DeleteFunc(known, func(_ string, x roster) bool { return x.until <= now })
			r.until = now + countEvery
			known[room] = r
		}
		then(r)
	}))
}

// do returns an action that calls f, in one turn.
func do(f func()) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	})
}

// taken reports whether another member has that name, however it is written.
func (r roster) taken(name, id string) bool {
	other, ok := r.ids[strings.ToLower(name)]
	return ok && other != id
}

// with returns r with a member in it, for that member.
func (r roster) with(name, id string) roster {
	if r.ids[strings.ToLower(name)] == id {
		return r
	}
	if r.count++; len(r.names) < crowd {
		r.names = append(slices.Clip(r.names), name) // others have r, too
		slices.Sort(r.names)
	}
	return r
}

// event is the answer to who.
func (r roster) event(room string) *event {
	text := "* in " + room + ": " + strings.Join(r.names, ", ")
	if more := r.count - len(r.names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return tell(text+"\n", news{Type: "names", Here: r.count, Names: r.names})
}
