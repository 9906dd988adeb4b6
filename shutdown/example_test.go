package shutdown_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// Terms in the order of their patience. A field that is set replaces the zero Policy whole.
func ExamplePolicy() {
	for _, terms := range []shutdown.Policy{
		shutdown.Unbounded,
		{Turns: 5},
		{Time: time.Minute},
		{}, // what most servers want
		{Turns: 5, Time: time.Second, Drop: true},
		shutdown.Halt,
		shutdown.Suspend,
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

// Move is an order of an application's own: besides the terms it says where clients are to go.
type Move struct{ To string }

func (Move) Policy() shutdown.Policy { return shutdown.Policy{Time: time.Minute, Drop: true} }

// farewell is what a handler says under an order. The very value that was given comes to its Stop method.
func farewell(o shutdown.Order) string {
	if move, ok := o.(Move); ok {
		return "see you at " + move.To
	}
	return "good bye"
}

func ExampleOrder() {
	for _, o := range []shutdown.Order{shutdown.Now{}, Move{To: "10.0.0.2:7007"}} {
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

// A program may take a Cut for an orderly end, and every other error for a failure.
func ExampleCut() {
	err := serve()
	var cut *shutdown.Cut
	if errors.As(err, &cut) {
		fmt.Println("cut:", cut.Tasks, "tasks, the first of them", cut.Names[0])
	}
	fmt.Println(err)
	// Output:
	// cut: 3 tasks, the first of them 2 × upload
	// server: shutdown: dropped 3 tasks (2 × upload, chat); order: shutdown_test.Move; terms: drain, 1m0s, then drop
}
