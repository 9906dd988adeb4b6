package inspect

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
)

// Report is what a server was doing at one moment.
type Report struct {
	Time       time.Time    `json:"time"`
	Schedulers []*Scheduler `json:"schedulers"`
	Findings   []string     `json:"findings"` // what needs attention, in sentences
	Stalls     Stalls       `json:"stalls"`
	Recordings Recordings   `json:"recordings"`

	seen *seen // when tasks were looked at last, now or before; nil if never
}

// Scheduler is what one scheduler was doing.
type Scheduler struct {
	Index  int           `json:"index"`
	State  string        `json:"state"`          // asleep, waking up, in a pass, in a turn of …, not running
	Late   time.Duration `json:"late,omitempty"` // how old the rest is, if the scheduler did not answer
	Uptime time.Duration `json:"uptime"`         // since it is inspected
	Idle   Idle          `json:"idle"`           // of it, with nothing to do
	Ends   *Ending       `json:"ends,omitempty"` // nil unless an order to end is in force
	// Counts are of what has happened since the start (their names end in _total), and of this moment.
	Counts map[string]uint64 `json:"counts"`
	Turns  Histogram         `json:"turns"` // how long turns took, of one in 64
	Wakes  Histogram         `json:"wakes"` // from a wake-up to the turn, of one in 64
	Kinds  []Kind            `json:"kinds"`

	Services  []Service `json:"services,omitempty"`
	Stages    []Stages  `json:"stages,omitempty"`
	Tasks     []Task    `json:"tasks,omitempty"`     // if asked for
	Processes []Process `json:"processes,omitempty"` // if asked for
}

// Ending is an order to end that a scheduler obeys. Tasks tell which of them know of it, see [Task].Told.
type Ending struct {
	Order string        `json:"order"`
	Terms string        `json:"terms"`          // its bounds
	Since time.Duration `json:"since"`          // it came
	Left  time.Duration `json:"left,omitempty"` // until Run ends, whatever is left; 0: no such bound
}

func (e *Ending) String() string {
	text := fmt.Sprintf("ending for %v: %s; terms: %s", round(e.Since), e.Order, e.Terms)
	if e.Left > 0 {
		text += fmt.Sprintf("; %v are left", round(e.Left))
	}
	return text
}

// Idle is how a thread that had nothing to do has spent its time. The strategies of package demon choose that.
type Idle struct {
	Asleep  time.Duration `json:"asleep"`  // in the operating system, which wakes it
	Pausing time.Duration `json:"pausing"` // for a fixed time, before it looks: strategy "poll"
	Looking time.Duration `json:"looking"` // for events, using the CPU: strategies "hybrid" and "busy"
}

// All is the sum.
func (i Idle) All() time.Duration { return i.Asleep + i.Pausing + i.Looking }

// Kind is what the tasks of one kind have in common: they serve connections of one service, or their actions are of one type
// or function.
type Kind struct {
	Name    string    `json:"name"`
	Alive   int       `json:"alive"`
	Spawned uint64    `json:"spawned"`
	Failed  uint64    `json:"failed"`
	Turns   uint64    `json:"turns"`
	Woken   uint64    `json:"woken"`
	Took    Histogram `json:"took"`  // of one turn in 64 of the scheduler
	Wakes   Histogram `json:"wakes"` // from a wake-up to the turn, of one in 64 of the scheduler
}

// Task is a task or demon.
type Task struct {
	ID        uint32        `json:"id"` // among those of its scheduler; another task may have it later
	Scheduler int           `json:"scheduler"`
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	State     string        `json:"state"` // ready, waiting, offloaded, out of turns, abandoned
	Demon     bool          `json:"demon,omitempty"`
	Told      bool          `json:"told,omitempty"` // of the order to end that is in force
	Age       time.Duration `json:"age"`
	Since     time.Duration `json:"since"`           // its latest turn
	Waits     []string      `json:"waits,omitempty"` // what it waits for

	// Of its connection, if it serves one.
	Peer   string        `json:"peer,omitempty"`   // the other end
	Unread int           `json:"unread,omitempty"` // bytes that were received, and not taken by the action
	Queued int           `json:"queued,omitempty"` // bytes that were written, and not taken by the system
	Still  time.Duration `json:"still,omitempty"`  // for how long no byte has gone either way; less than 0: not known
	Stuck  time.Duration `json:"stuck,omitempty"`  // for how long the system has taken none of what is queued

	born, last uint32 // see row
	turns      uint64 // of all tasks that have had its place
}

// What processes, services and stages say of themselves.
type (
	Process = hook.Process
	Service = hook.Service
	Stages  = hook.Stages
)

func newScheduler(room sizes) *Scheduler {
	return &Scheduler{Counts: make(map[string]uint64, room.counts), Kinds: make([]Kind, 0, room.kinds)}
}

// reportTo writes what the probe knows to s, which has room for it. It is for the scheduler's thread.
func (p *probe) reportTo(s *Scheduler) {
	s.Index, s.Uptime = p.index, p.clock()-p.start
	s.Idle = Idle{p.idle[hook.Asleep], p.idle[hook.Pausing], p.idle[hook.Looking]}
	s.Turns, s.Wakes = p.turns, p.wakes
	s.Counts["spawned_total"], s.Counts["ended_total"] = p.spawned, p.ended
	s.Counts["failed_total"], s.Counts["dropped_total"] = p.failed, p.dropped
	s.Counts["woken_total"], s.Counts["rounds_total"] = p.woken, p.rounds
	s.Counts["looks_total"], s.Counts["sleeps_total"] = p.looks, p.sleeps
	if order, since, left := p.s.Internals().Order(); order != nil {
		s.Ends = &Ending{act.Name(order), fmt.Sprint(order.Policy()), since, left}
	}
	for name, k := range p.kinds {
		s.Kinds = append(s.Kinds, Kind{name, k.alive, k.spawned, k.failed, k.turns, k.woken, k.took, k.wakes})
	}
}

func (r *Report) tasks() iter.Seq[*Task] {
	return each(r, func(s *Scheduler) []Task { return s.Tasks })
}

func (r *Report) processes() iter.Seq[*Process] {
	return each(r, func(s *Scheduler) []Process { return s.Processes })
}

// each goes through what all schedulers have.
func each[T any](r *Report, of func(*Scheduler) []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, s := range r.Schedulers {
			rows := of(s)
			for i := range rows {
				if !yield(&rows[i]) {
					return
				}
			}
		}
	}
}

// withoutTasks returns a copy without tasks and processes, for those that have not asked for them.
func (r *Report) withoutTasks() *Report {
	brief := *r
	brief.Schedulers = slices.Clone(r.Schedulers)
	for i, s := range r.Schedulers {
		without := *s
		without.Tasks, without.Processes = nil, nil
		brief.Schedulers[i] = &without
	}
	return &brief
}

// Sum returns the counts, services, stages and kinds of all schedulers together, without their tasks and processes.
func (r *Report) Sum() *Scheduler {
	sum := &Scheduler{Counts: map[string]uint64{}}
	kinds := map[string]*Kind{}
	services := map[string]*Service{}
	// The latest answer comes first: each one has the open connections of a service on all schedulers.
	byAge := slices.SortedStableFunc(slices.Values(r.Schedulers), func(a, b *Scheduler) int { return cmp.Compare(a.Late, b.Late) })
	for _, s := range byAge {
		sum.Uptime += s.Uptime
		sum.Idle.Asleep += s.Idle.Asleep
		sum.Idle.Pausing += s.Idle.Pausing
		sum.Idle.Looking += s.Idle.Looking
		for name, n := range s.Counts {
			sum.Counts[name] += n
		}
		sum.Turns.merge(&s.Turns)
		sum.Wakes.merge(&s.Wakes)
		for _, k := range s.Kinds {
			all := kinds[k.Name]
			if all == nil {
				all = &Kind{Name: k.Name}
				kinds[k.Name] = all
			}
			all.Alive += k.Alive
			all.Spawned += k.Spawned
			all.Failed += k.Failed
			all.Turns += k.Turns
			all.Woken += k.Woken
			all.Took.merge(&k.Took)
			all.Wakes.merge(&k.Wakes)
		}
		for _, v := range s.Services {
			all := services[v.Name]
			if all == nil {
				all = &Service{Name: v.Name, Max: v.Max, Open: v.Open}
				services[v.Name] = all
			}
			all.Accepted += v.Accepted
			all.Full += v.Full
			all.Shortages += v.Shortages
			all.Refused += v.Refused
			all.TooMany += v.TooMany
			all.TooFast += v.TooFast
			all.Reclaimed += v.Reclaimed
			all.Gone += v.Gone
			all.Failed += v.Failed
		}
		sum.Stages = append(sum.Stages, s.Stages...)
	}
	for _, k := range kinds {
		sum.Kinds = append(sum.Kinds, *k)
	}
	slices.SortFunc(sum.Kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	for _, v := range services {
		sum.Services = append(sum.Services, *v)
	}
	slices.SortFunc(sum.Services, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	return sum
}
