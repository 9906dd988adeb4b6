package listener

import (
	"cmp"
	"math/bits"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Reconnect configures an action that dials, runs the action of the connection, and dials again when that has ended or
// the dial has failed. In between it pauses, for Least at first, and then each time twice as long, up to Most. After a
// connection that lasted longer than the pause before it, the pause is Least again. Each pause is shortened by up to a
// half, so that the clients of a server that went away do not come back all at once.
//
// When shutdown begins while it dials or pauses, it is Done. The action of a connection is told to shut down, and is
// the last one. A panic of that action ends the task. A coroutine runs the Action with Co.Do, an actor (package
// process) with process.Do.
type Reconnect struct {
	// To says where to dial, with which limits and filters. Reconnect dials with a copy of it each time, so it must not
	// be run itself.
	To Connect
	// Handler makes the action of a connection. When the action has finished, the connection is closed (see
	// [Conn.Close]).
	Handler func(*Conn) act.Action
	// DialTimeout bounds each dial, from the lookup to the last filter; 0 means 30 s.
	DialTimeout time.Duration
	// Least is the first pause between two dials, and Most the longest; 0 means 1 s and 1 min.
	Least, Most time.Duration
	// Again, if not nil, is called before each pause and reports whether to go on. err is the error of the dial or of
	// the action of the connection, nil if that was Done. If Again returns false, Reconnect fails with err, or is Done
	// if err is nil. Without Again the error is logged, and Reconnect goes on.
	Again func(err error, pause time.Duration) bool
}

// Action returns a new action that keeps a connection. It goes on until shutdown begins, or until Again returns false.
// It panics in its first turn if Handler is nil or a bound is negative.
func (r Reconnect) Action() act.Action { return &reconnect{Reconnect: r} }

type reconnect struct {
	Reconnect
	step    act.Child     // a dial, the action of a connection, or a pause
	dial    *Connect      // nil: none is under way
	conn    *Conn         // nil: there is none
	since   time.Duration // when conn was made
	pause   time.Duration // the last one, before it was shortened; 0: the next one is Least
	ordered bool
}

func (r *reconnect) Act(t *act.Task) act.Directive {
	for {
		d := r.step.Act(t)
		switch {
		case r.ordered && (r.conn == nil || d.Finished()):
			if r.conn != nil {
				r.hangUp(t)
			}
			_ = r.Close()
			return act.Done
		case !d.Finished():
			return d
		}
		var err error
		if d == act.Failed {
			err = t.Err()
		}
		_ = r.step.Close() // its result is known
		switch {
		case r.conn != nil:
			r.hangUp(t)
		case r.dial == nil: // it begins, or a pause is over
			r.begin()
			continue
		case err == nil:
			r.conn, r.dial, r.since = r.dial.Conn(), nil, t.Scheduler().Now()
			r.step = act.Child{Action: r.Handler(r.conn)}
			continue
		}
		r.dial = nil
		switch {
		case r.again(t, err):
		case err != nil:
			return t.Fail(err)
		default:
			return act.Done
		}
	}
}

func (r *reconnect) begin() {
	if r.Handler == nil || min(r.DialTimeout, r.Least, r.Most) < 0 {
		panic("listener: a Reconnect without a Handler, or with a negative bound")
	}
	dial := r.To
	r.dial = &dial
	r.step = act.Child{Action: Within(cmp.Or(r.DialTimeout, 30*time.Second), r.dial)}
}

// hangUp closes the connection, and notes whether it was a success.
func (r *reconnect) hangUp(t *act.Task) {
	if t.Scheduler().Now()-r.since > r.pause {
		r.pause = 0
	}
	_ = r.conn.Close() // an error means that the peer has gone
	r.conn = nil
}

// again begins a pause, or reports that there is to be none.
func (r *reconnect) again(t *act.Task, err error) bool {
	least := cmp.Or(r.Least, time.Second)
	most := max(least, cmp.Or(r.Most, time.Minute))
	r.pause = max(least, min(r.pause, most/2)*2)
	// The nanoseconds of the clock differ between clients, and in a simulation are the same each time.
	shorter, _ := bits.Mul64(uint64(t.Scheduler().Clock().Wall().UnixNano())*0x9E3779B97F4A7C15, uint64(r.pause/2))
	pause := r.pause - time.Duration(shorter)
	r.step = act.Child{Action: &Sleep{For: pause}}
	if r.Again != nil {
		return r.Again(err, pause)
	}
	t.Scheduler().Logger().Warn("a connection is dialled again", zap.String("address", r.To.Address), zap.Duration("pause", pause), zap.Error(err))
	return true
}

// Describe implements [act.Describer].
func (r *reconnect) Describe(d *act.Description) { d.Of(r.step.Action) }

// Stop forwards a shutdown request to the action of the connection. No further connection is dialled.
func (r *reconnect) Stop(t *act.Task, o shutdown.Order) {
	r.ordered = true
	r.step.Stop(t, o)
}

// Abandon implements [act.Abandoner]. It aborts the connection, which the function that its action has offloaded does
// not use.
func (r *reconnect) Abandon() act.Action {
	rest := r.step.Abandon()
	_ = r.Close()
	return rest
}

// Close aborts the connection, or gives up the dial.
func (r *reconnect) Close() error {
	if r.conn == nil && r.dial != nil {
		r.conn = r.dial.Conn() // made in the turn in which shutdown began
	}
	if r.conn != nil {
		r.conn.Abort()
		r.conn = nil
	}
	return r.step.Close()
}
