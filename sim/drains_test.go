package sim_test

import (
	"time"

	"github.com/daimon-go/daimon/shutdown"
)

// drains is what Config.Draining has said in a world of orders: see TestWorldEnds.
type drains struct {
	at   time.Duration // the latest; 0: none
	last shutdown.Drain
	left int // ordinary tasks at that moment
}

// standing returns when the oldest order was given that was not withdrawn; less than 0: there is none.
func (e *orderly) standing() time.Duration {
	for _, o := range e.orders {
		if !o.withdrawn {
			return o.given
		}
	}
	return -1
}

func (e *orderly) left() (sum int) {
	for _, n := range e.alive {
		sum += n
	}
	return sum
}

// drain compares a report with what the world knows: the schedulers have counted at about the same moment.
func (e *orderly) drain(d shutdown.Drain) {
	now, left, before := e.w.Now(), e.left(), e.drains
	e.drains = drains{now, d, left}
	if e.over {
		return
	}
	may, must := e.inForce()
	first := before.at == 0 || now-d.For > before.at-before.last.For+tolerance // of its orders: those before were withdrawn
	switch {
	case e.standing() < 0:
		e.w.Errorf("at %v there is a report of an end, and no order: %v", now, d)
	case len(d.Silent) > 0:
		e.w.Errorf("at %v a scheduler is missed that has turns: %v", now, d)
	case before.at > 0 && now < before.at+time.Second-tolerance && !first:
		e.w.Errorf("two reports at %v and %v", before.at, now)
	case d.Phase == "announced" && must, d.Phase != "announced" && !may:
		e.w.Errorf("at %v an order is in force: %v, and the report says: %v", now, may, d)
	case d.Cut.Tasks < left:
		e.w.Errorf("%d tasks are left at %v, and the report says: %v", left, now, d)
	case e.lasts: // they are counted when they are told
	case !first && d.Cut.Tasks > before.left:
		e.w.Errorf("%d tasks were left at %v, and at %v the report says: %v", before.left, before.at, now, d)
	case !first && d.Ended != before.last.Cut.Tasks-d.Cut.Tasks:
		e.w.Errorf("at %v were left %v, and at %v the report says: %v", before.at, before.last, now, d)
	}
}

// missDrain looks whether a report is missing.
func (e *orderly) missDrain() {
	if from := max(e.standing(), e.drains.at); e.standing() >= 0 && !e.over && e.left() > 0 && e.w.Now() > from+time.Second+2*tolerance {
		e.w.Errorf("at %v there is no report of the end since %v", e.w.Now(), from)
	}
}
