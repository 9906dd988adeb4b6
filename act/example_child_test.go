package act_test

import (
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// retried is an action that is begun again when it fails, a few times.
type retried struct {
	act.Child
	begin func() act.Action
	tries int
}

func (r *retried) Act(t *act.Task) act.Directive {
	if r.Action == nil {
		r.Action = r.begin()
	}
	d := r.Child.Act(t)
	if d != act.Failed || r.tries == 0 {
		return d
	}
	r.tries--
	_ = r.Close()
	r.Child = act.Child{Action: r.begin()}
	return act.Yield
}

// Stop puts something before an order; everything else is the embedded Child's.
func (r *retried) Stop(t *act.Task, o shutdown.Order) {
	r.tries = 0
	r.Child.Stop(t, o)
}

func ExampleChild() {
	attempt := 0
	s := act.New(act.Config{})
	defer s.Close()
	s.Spawn(&retried{tries: 5, begin: func() act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			attempt++
			fmt.Println("attempt", attempt)
			if attempt < 3 {
				return t.Fail(fmt.Errorf("not yet"))
			}
			return act.Done
		})
	}})
	fmt.Println(s.Run())
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// <nil>
}
