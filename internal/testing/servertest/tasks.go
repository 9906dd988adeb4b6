package servertest

import "github.com/daimon-go/daimon/act"

// TurnEnd is an act.TurnEnder made of a function.
type TurnEnd func()

// TurnEnd calls f.
func (f TurnEnd) TurnEnd() { f() }

// Waits returns a task that calls first and waits. In its next turn it adds 1 to woken and ends.
func Waits(first func(t *act.Task), woken *int) act.Func {
	begun := false
	return func(t *act.Task) act.Directive {
		if begun {
			*woken++
			return act.Done
		}
		begun = true
		first(t)
		return act.Wait
	}
}
