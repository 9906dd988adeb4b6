package listener

import (
	"cmp"
	"math/bits"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Reconnect makes an action that keeps up a connection: it dials, runs the action of the connection, and dials again when that has
// ended or the dial has failed. In between it pauses, for Least at first, and then each time twice as long, up to Most. After a
// connection that has lasted longer than the pause before it, the pause is Least again. Each pause is shortened by up to a
// half, so that the clients of a server that has gone do not come back all at once.
//
// An order ends it while it dials or pauses. A connection gets the order, and is the last one. A panic of its action ends the
// task. A coroutine runs it with Co.Do, a process with process.Do.
type Reconnect struct {
	// To is what dials: a copy of it, each time. It must not be used otherwise.
	To Connect
	// Handler makes the action of a connection, which is closed in stages when that has finished.
	Handler func(*Conn) act.Action
	// DialTimeout bounds each dial and its filters; 0 means 30 s.
	DialTimeout time.Duration
	// Least and Most bound the pauses; 0 means 1 s and 1 min.
	Least, Most time.Duration
	// Again, unless it is nil, is asked before each pause whether to go on. err is the failure of the dial, or of the action of
	// the connection; nil if that was Done. If Again returns false, Reconnect ends with that failure, or is Done. Without
	// Again the failure is logged, and Reconnect goes on.
	Again func(err error, pause time.Duration) bool
}

// Action returns an action of a task. It goes on until an order comes, unless Again says otherwise.
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
		_ = r.step.Close() // its verdict is known
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
	// The nanoseconds of the clock are other ones for each client, and in a simulation the same each time.
	shorter, _ := bits.Mul64(uint64(t.Scheduler().Clock().Wall().UnixNano())*0x9E3779B97F4A7C15, uint64(r.pause/2))
	pause := r.pause - time.Duration(shorter)
	r.step = act.Child{Action: &Sleep{For: pause}}
	if r.Again != nil {
		return r.Again(err, pause)
	}
	t.Scheduler().Logger().Warn("a connection is dialled again", zap.String("address", r.To.Address), zap.Duration("pause", pause), zap.Error(err))
	return true
}

// Describe says what a waiting task waits for.
func (r *reconnect) Describe(d *act.Description) { d.Of(r.step.Action) }

// Stop passes an order on to the connection.
func (r *reconnect) Stop(t *act.Task, o shutdown.Order) {
	r.ordered = true
	r.step.Stop(t, o)
}

// Abandon aborts the connection: the function that its action has offloaded does not use it.
func (r *reconnect) Abandon() act.Action {
	rest := r.step.Abandon()
	_ = r.Close()
	return rest
}

// Close aborts the connection, or gives up the dial.
func (r *reconnect) Close() error {
	if r.conn == nil && r.dial != nil {
		r.conn = r.dial.Conn() // made in the turn in which an order came
	}
	if r.conn != nil {
		r.conn.Abort()
		r.conn = nil
	}
	return r.step.Close()
}
