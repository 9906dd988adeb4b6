package act_test

import (
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// pie waits for three apples.
type pie struct {
	apples int
	waiter act.Waker
}

func (p *pie) Act(t *act.Task) act.Directive {
	if p.apples < 3 {
		p.waiter = t.Waker()
		return act.Wait
	}
	return act.Done
}

func (p *pie) Describe(d *act.Description) {
	if p.waiter.Armed() {
		d.WaitsFor(fmt.Sprintf("%d more apples", 3-p.apples))
	}
}

func (p *pie) String() string { return "a pie" }

// The Cut of a shutdown says which tasks were left, and what they waited for.
func ExampleDescriber() {
	s := act.New(act.Config{})
	s.Spawn(&pie{apples: 1})
	_, _ = s.Step(1)
	var cut *shutdown.Cut
	if errors.As(s.Close(), &cut) {
		fmt.Println(cut.Left[0].Name, "waits for", cut.Left[0].Waits)
	}
	// Output:
	// a pie waits for [2 more apples]
}
