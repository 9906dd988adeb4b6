package inspect

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// report is what a server was doing at one moment.
type report struct {
	Time       time.Time    `json:"time"`
	Schedulers []*scheduler `json:"schedulers"`
	Findings   []string     `json:"findings"` // what needs attention, in sentences
	Stalls     stalls       `json:"stalls"`
	Recordings recordings   `json:"recordings"`

	tasks bool          // it was asked for them
	asked time.Duration // when, on the clock of the Group
	seen  *seen         // when tasks were polled last, now or before; nil if never
}

// scheduler is what one scheduler was doing.
type scheduler struct {
	Index  int           `json:"index"`
	State  string        `json:"state"`          // asleep, waking up, in a pass, in a turn of …, not running
	Late   time.Duration `json:"late,omitempty"` // how old the rest is, if the scheduler did not answer
	Uptime time.Duration `json:"uptime"`         // since it is inspected
	Idle   idleTime      `json:"idle"`           // of it, with nothing to do
	Ends   *ending       `json:"ends,omitempty"` // nil unless a shutdown is in force
	// Counts count events since the start (their names end in _total), and present states.
	Counts map[string]uint64 `json:"counts"`
	Turns  histogram         `json:"turns"` // how long turns took, of one in 64
	Wakes  histogram         `json:"wakes"` // from a wake-up to the turn, of one in 64
	Kinds  []kindRow         `json:"kinds"`

	Services []facts.Service `json:"services,omitempty"`
	Packets  []facts.Packets `json:"packets,omitempty"`
	Stages   []facts.Stages  `json:"stages,omitempty"`
	Routes   []facts.Route   `json:"routes,omitempty"`
	Backends []facts.Backend `json:"backends,omitempty"`

	tasks     []task          // if asked for
	processes []facts.Process // if asked for
}

// ending is a shutdown request that a scheduler obeys. Told says of each task whether it was told.
type ending struct {
	Order string        `json:"order"`
	Terms string        `json:"terms"`          // its bounds
	Since time.Duration `json:"since"`          // it came
	Left  time.Duration `json:"left,omitempty"` // until Run ends, whatever is left; 0: no such bound
}

func (e *ending) String() string {
	text := fmt.Sprintf("ending for %v: %s; terms: %s", round(e.Since), e.Order, e.Terms)
	if e.Left > 0 {
		text += fmt.Sprintf("; %v are left", round(e.Left))
	}
	return text
}

// idleTime is how a thread that had nothing to do has spent its time. The strategies of package demon choose that.
type idleTime struct {
	Asleep  time.Duration `json:"asleep"`  // in the operating system, which wakes it
	Pausing time.Duration `json:"pausing"` // for a fixed time, before it polls: strategy "poll"
	Polling time.Duration `json:"polling"` // for events, using the CPU: strategies "hybrid" and "busy"
}

func (i idleTime) all() time.Duration { return i.Asleep + i.Pausing + i.Polling }

// kindRow is what the tasks of one kind have in common: they serve connections of one service, or their actions are of one type
// or function.
type kindRow struct {
	Name    string    `json:"name"`
	Alive   int       `json:"alive"`
	Spawned uint64    `json:"spawned"`
	Failed  uint64    `json:"failed"`
	Turns   uint64    `json:"turns"`
	Woken   uint64    `json:"woken"`
	Took    histogram `json:"took"`  // of one turn in 64 of the scheduler
	Wakes   histogram `json:"wakes"` // from a wake-up to the turn, of one in 64 of the scheduler
}

// task is a task or demon.
type task struct {
	ID        uint32        `json:"id"` // unique on its scheduler; another task may have it later
	Scheduler int           `json:"scheduler"`
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	State     string        `json:"state"` // ready, waiting, offloaded, out of turns, abandoned
	Demon     bool          `json:"demon,omitempty"`
	Told      bool          `json:"told,omitempty"` // of the shutdown that is in force
	Age       time.Duration `json:"age"`
	Since     time.Duration `json:"since"`           // its latest turn
	Waits     []string      `json:"waits,omitempty"` // what it waits for

	// Of its connection, if it serves one.
	Peer   string        `json:"peer,omitempty"`   // the other end
	Unread int           `json:"unread,omitempty"` // bytes that were received, and not taken by the action
	Queued int           `json:"queued,omitempty"` // bytes that were written, and not taken by the system
	Still  time.Duration `json:"still,omitempty"`  // for how long no byte has gone either way; less than 0: not known
	Stuck  time.Duration `json:"stuck,omitempty"`  // for how long the kernel has taken none of the queued bytes

	born  uint32 // see row
	turns uint64 // of all tasks that have had its place
}

// reportTo writes the figures of the probe to s, which has room for them. It is for the scheduler's thread.
func (p *probe) reportTo(s *scheduler) {
	s.Index, s.Uptime = p.index, p.clock()-p.start
	s.Idle = idleTime{p.idle[facts.Asleep], p.idle[facts.Pausing], p.idle[facts.Polling]}
	s.Turns, s.Wakes = p.turns, p.wakes
	s.Counts["spawned_total"], s.Counts["ended_total"] = p.spawned, p.ended
	s.Counts["failed_total"], s.Counts["dropped_total"] = p.failed, p.dropped
	s.Counts["woken_total"], s.Counts["polls_total"], s.Counts["sleeps_total"] = p.woken, p.polls, p.sleeps
	if order, since, left := p.s.Internals().Order(); order != nil {
		s.Ends = &ending{act.Name(order), fmt.Sprint(order.Policy()), since, left}
	}
	for _, k := range p.kinds {
		s.Kinds = append(s.Kinds, k.kindRow)
	}
}
