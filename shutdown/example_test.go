package shutdown_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// Policies, the most patient first. If any field is set, none has a default.
func ExamplePolicy() {
	for _, terms := range []shutdown.Policy{
		shutdown.Policy{Kind: shutdown.Unbounded},
		{Turns: 5},
		{Time: time.Minute},
		{}, // what most servers want
		{Turns: 5, Time: time.Second, Drop: true},
		shutdown.Policy{Kind: shutdown.Halt},
		shutdown.Policy{Kind: shutdown.Suspend},
	} {
		fmt.Println(terms)
	}
	// Output:
	// endless
	// drain, 5 turns a task
	// drain, 1m0s
	// drain, 30s, then drop
	// drain, 5 turns a task, 1s, then drop
	// halt
	// suspend
}

// Move is a shutdown request of an application's own: it also says where clients should go.
type Move struct{ To string }

func (Move) Policy() shutdown.Policy { return shutdown.Policy{Time: time.Minute, Drop: true} }

// farewell is the last message of a handler. Its Stop method gets the very value that was given to Shutdown.
func farewell(o shutdown.Order) string {
	if move, ok := o.(Move); ok {
		return "see you at " + move.To
	}
	return "good bye"
}

func ExampleOrder() {
	for _, o := range []shutdown.Order{shutdown.Policy{}, Move{To: "10.0.0.2:7007"}} {
		fmt.Printf("%s (%v)\n", farewell(o), o.Policy())
	}
	// Output:
	// good bye (drain, 30s, then drop)
	// see you at 10.0.0.2:7007 (drain, 1m0s, then drop)
}

// serve stands for act.Run, whose error is a Cut if something did not finish in time.
func serve() error {
	return fmt.Errorf("server: %w", &shutdown.Cut{
		Order: Move{To: "10.0.0.2:7007"}, Tasks: 3, Dropped: true,
		Names: []shutdown.Count{{Name: "upload", N: 2}, {Name: "chat", N: 1}},
	})
}

// A program may treat a Cut as a normal end, and every other error as a failure.
func ExampleCut() {
	err := serve()
	var cut *shutdown.Cut
	if errors.As(err, &cut) {
		fmt.Println("cut:", cut.Tasks, "tasks, the first of them", cut.Names[0])
	}
	fmt.Println(err)
	// Output:
	// cut: 3 tasks, the first of them 2 × upload
	// server: shutdown: dropped 3 tasks (2 × upload, chat); order: shutdown_test.Move; policy: drain, 1m0s, then drop
}

// During shutdown a program is told each second what it waits for: see Config.Draining of package act.
func ExampleDrain() {
	d := shutdown.Drain{
		Phase: "finishing", For: 12 * time.Second, Bound: 18 * time.Second, Ended: 3,
		Cut: shutdown.Cut{Tasks: 41, Kinds: []shutdown.Count{{Name: "tcp 10.0.0.1:443", N: 41}}, Left: []shutdown.Unfinished{{
			Kind: "tcp 10.0.0.1:443", Name: "upload", State: "waiting", Peer: "10.0.0.7:5012",
			Waits: []string{"input from 10.0.0.7:5012"}, Still: 9 * time.Second,
		}}},
	}
	fmt.Println(d)
	for _, l := range d.Cut.Left {
		if l.Still > 5*time.Second {
			fmt.Println("slow:", l.Peer)
		}
	}
	// Output:
	// ending for 12s, finishing, for 18s more at most: 41 tasks (41 × tcp 10.0.0.1:443); 3 tasks ended since the last report; the oldest: upload of tcp 10.0.0.1:443, peer 10.0.0.7:5012, still for 9s, waits for input from 10.0.0.7:5012
	// slow: 10.0.0.7:5012
}
