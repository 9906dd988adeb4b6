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
type roster []topic.Member

// counted is the roster of a crowd, which is good until then.
type counted struct {
	roster
	until time.Duration
}

// crowds has the crowds that members on a scheduler have asked for lately, by room.
var crowds = act.NewLocal(func(*act.Scheduler) map[string]counted { return map[string]counted{} })

// members returns an action that asks who is in a room, and calls then with the answer. In a crowd, all who ask within
// countEvery get the same one.
func (c *Chat) members(t *act.Task, room string, then func(roster)) act.Action {
	known, now := crowds.Get(t.Scheduler()), t.Scheduler().Now()
	if x := known[room]; now < x.until {
		return do(func() { then(x.roster) })
	}
	answer := c.topics.Members(topicOf(room))
	return act.Seq(answer.Await(), do(func() {
		here, _ := answer.Value() // Await has had no error
		if len(here) > crowd {
			maps.DeleteFunc(known, func(_ string, x counted) bool { return x.until <= now })
			known[room] = counted{here, now + countEvery}
		}
		then(here)
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
	return slices.ContainsFunc(r, func(m topic.Member) bool { return m.ID != id && strings.EqualFold(string(m.Info), name) })
}

// with returns r with m in it. It does not change r.
func (r roster) with(m topic.Member) roster {
	if slices.ContainsFunc(r, func(x topic.Member) bool { return x.ID == m.ID }) {
		return r
	}
	return append(slices.Clip(r), m)
}

// names returns names, at most a crowd of them.
func (r roster) names() (names []string) {
	for _, m := range r[:min(len(r), crowd)] {
		names = append(names, string(m.Info))
	}
	slices.Sort(names)
	return names
}

// event is the answer to who.
func (r roster) event(room string) *event {
	names := r.names()
	text := "* in " + room + ": " + strings.Join(names, ", ")
	if more := len(r) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return tell(text+"\n", news{Type: "names", Here: len(r), Names: names})
}
