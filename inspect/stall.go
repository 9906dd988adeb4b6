package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// stall is a turn, or a part of a pass, that has held up its scheduler for longer than the limit of the watchdog.
type stall struct {
	Scheduler int       `json:"scheduler"`
	Began     time.Time `json:"began"` // to within half the limit, as Lasted; or earlier, if all schedulers had slept

	// Lasted is how long it had lasted when it was reported, or last reported; once it has Ended, how long in all.
	Lasted time.Duration `json:"lasted"`
	Ended  bool          `json:"ended"`

	// Kind is the kind of the action in whose turn it is, and Task its id. In a pass, as of posted functions and of timers,
	// Kind is "" and Task 0.
	Kind string `json:"kind,omitempty"`
	Task uint32 `json:"task,omitempty"`

	// Peer is the other end of the connection that the action serves, if it serves one: with a PROXY header the proxy.
	Peer string `json:"peer,omitempty"`

	Cause  cause  `json:"cause"`
	Detail string `json:"detail,omitempty"` // the system call and its descriptor, without names of files; or the operation in which the goroutine is parked

	// Func and At are the innermost function that is neither of the standard library nor of package act; At is the path of its
	// package, its file and line, as example.com/a/b/file.go:12, or main.go:12 in the program's own package main. Stack has all
	// functions of the turn, the innermost first. They are empty if the stack could not be had, as in a system call.
	Func  string   `json:"func,omitempty"`
	At    string   `json:"at,omitempty"`
	Stack []string `json:"stack,omitempty"`

	// File is where the last events were to be written: see Inspector.Dir. It is empty if there were too many such files.
	File string `json:"file,omitempty"`
}

// cause is why a turn does not end.
type cause string

// The causes of a stall. On Linux the kernel's figures of the thread tell them apart; elsewhere only parked and
// collector are known, from the stack.
const (
	computing    cause = "computing"                // the thread had a CPU for half of the time, or for longer than the limit
	waitsForCPU  cause = "waiting for a CPU"        // the thread could run, and other threads had the CPUs
	inSystemCall cause = "blocked in a system call" // or in a page fault
	collector    cause = "held up by the collector" // it marks or sweeps for what it allocates, or waits for a collection
	parked       cause = "parked"                   // it waits in the Go runtime: for a lock, a channel, time.Sleep
	stopped      cause = "stopped"                  // by a signal or a debugger
	unknown      cause = "unknown"
)

// stalls counts the stalls since the watchdog was started.
type stalls struct {
	Last       []stall       `json:"last"`       // the latest 64 that were reported, the latest first
	Durations  histogram     `json:"durations"`  // of all that have ended
	Reported   uint64        `json:"reported"`   // by a line in the log
	Suppressed uint64        `json:"suppressed"` // had no line, because there were too many
	Late       uint64        `json:"late"`       // how often the watchdog itself was late
	Latest     time.Duration `json:"latest"`     // by how much at most
}

const (
	remembered = 64               // stalls in Stalls.Last
	burst      = 8                // lines in the log that come at once,
	refill     = 10 * time.Second // and then one in this time
)

// ledger keeps the stalls.
type ledger struct {
	stalls
	ring []*stall // the oldest first
}

func (l *ledger) add(s *stall) {
	if len(l.ring) == remembered {
		l.ring = slices.Delete(l.ring, 0, 1)
	}
	l.ring = append(l.ring, s)
}

func (l *ledger) snapshot() stalls {
	all := l.stalls
	all.Last = make([]stall, 0, len(l.ring))
	for _, s := range slices.Backward(l.ring) {
		all.Last = append(all.Last, *s)
	}
	return all
}

// limiter lets burst things through at once, and then one in each refill.
type limiter struct {
	spent  int
	filled time.Time
}

func (l *limiter) allow(now time.Time) bool {
	if n := int(now.Sub(l.filled) / refill); n > 0 {
		l.spent = max(0, l.spent-n)
		l.filled = now
	}
	if l.spent == burst {
		return false
	}
	l.spent++
	return true
}

// fields returns the fields of a line in the log, without empty ones.
func (s *stall) fields() []zap.Field {
	fields := []zap.Field{zap.Int("scheduler", s.Scheduler), zap.Duration("for", s.Lasted), zap.String("cause", string(s.Cause))}
	if s.Kind != "" {
		fields = append(fields, zap.Uint32("task", s.Task))
	}
	for _, f := range []struct{ key, value string }{
		{"detail", s.Detail}, {"kind", s.Kind}, {"peer", s.Peer}, {"func", s.Func}, {"at", s.At}, {"file", s.File},
	} {
		if f.value != "" {
			fields = append(fields, zap.String(f.key, f.value))
		}
	}
	if len(s.Stack) > 0 {
		fields = append(fields, zap.Strings("stack", s.Stack))
	}
	return fields
}

func (s *stall) json() json.RawMessage {
	text, _ := json.Marshal(s) // nothing in it has no form in JSON
	return text
}

// what is the subject of a line in the log.
func (s *stall) what() string {
	if s.Kind == "" {
		return "a pass"
	}
	return "a turn"
}

// why is the cause with its detail.
func (s *stall) why() string {
	if s.Detail == "" {
		return string(s.Cause)
	}
	return string(s.Cause) + ": " + s.Detail
}

// findings says which stalls have not ended.
func (all *stalls) findings() (found []string) {
	for _, s := range all.Last {
		if s.Ended {
			continue
		}
		what := s.what()
		if s.Kind != "" {
			what += " of " + s.Kind
		}
		if s.At != "" {
			what += " at " + s.At
		}
		why := "which is " + s.why()
		if s.Cause == unknown && s.Detail == "" {
			why = "for a reason that is not known"
		}
		found = append(found, fmt.Sprintf("Scheduler %d is held up by %s, %s.", s.Scheduler, what, why))
	}
	return found
}
