package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// gate is an action that waits for what its name says.
type gate struct {
	act.Func
	name string
}

func newGate(name string) *gate {
	return &gate{func(t *act.Task) act.Directive { t.Waker(); return act.Wait }, name}
}

func (d *gate) Describe(to *act.Description) { to.WaitsFor(d.name) }

func lookAway() (int, error) { return 0, nil }

// The actions of this package pass the question on, or answer it.
func TestWaitsOfActions(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 2, Executor: never{}})
	t.Cleanup(func() { _ = g.Close() })
	here, there := g.Schedulers()[0], g.Schedulers()[1]
	done := act.Func(func(*act.Task) act.Directive { return act.Done })
	for name, c := range map[string]struct {
		action act.Action
		want   []string
	}{
		"an action that says nothing": {act.Func(func(t *act.Task) act.Directive { t.Waker(); return act.Wait }), nil},
		"a child":                     {&struct{ act.Child }{act.Child{Action: newGate("a door")}}, []string{"a door"}},
		"the step of Seq that runs":   {act.Seq(done, newGate("the second"), newGate("the third")), []string{"the second"}},
		"those of All that run":       {act.All(newGate("one"), done, newGate("another")), []string{"one", "another"}},
		"those of First":              {act.First(newGate("one"), act.Seq(newGate("another"))), []string{"one", "another"}},
		"Call": {&act.Call[int]{F: lookAway},
			[]string{"a function on another goroutine: github.com/daimon-go/daimon/act_test.lookAway"}},
		"On": {act.On(there, newGate("a door")), []string{"scheduler 1: a task of *act_test.gate"}},
	} {
		t.Run(name, func(t *testing.T) {
			here.Spawn(c.action)
			_, err := here.Step(1)
			require.NoError(t, err)
			var said act.Description
			said.Of(c.action)
			require.Equal(t, c.want, said.Internals().Waits.All())
		})
	}
}

// never is an Executor whose functions do not return during the test.
type never struct{}

func (never) Execute(func()) {}

// A name without the data of clients is that of the action, and not of a part of it. A parent forwards it.
func TestTheNameInADescription(t *testing.T) {
	secret := &named{"a client"}
	for want, a := range map[string]act.Action{
		"a client": &struct{ act.Child }{act.Child{Action: secret}},
		"":         act.All(secret),
	} {
		var said act.Description
		a.(act.Describer).Describe(&said)
		require.Equal(t, want, said.Name)
		require.Equal(t, []string{"the end"}, said.Internals().Waits.All())
	}
}

// named has a name for others.
type named struct{ name string }

func (*named) Act(*act.Task) act.Directive { return act.Done }
func (n *named) Describe(d *act.Description) {
	d.Name = n.name
	d.WaitsFor("the end")
}
