package process

import (
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// heed notes whether there is an order.
func (r *reactor) heed(t *act.Task) {
	r.dropping.Store(false)
	if r.order = t.Order(); r.order == nil && r.sys.order.Load() != nil {
		r.sys.order.Store(nil) // it is spent
	}
}

// Stop tells the processes that want to be told, those that were made here. All others go on with what they are sent.
// When nothing is ready any more the System holds Run no longer; processes that sleep then go on in a later Run, or
// end when the Group is closed.
func (r *reactor) Stop(_ *act.Task, o shutdown.Order) {
	r.sys.order.Store(&o)
	for _, c := range r.sys.census[r.s.Index()].all() {
		if c.body.stops() && c.call(told) {
			r.enqueue(c)
		}
	}
}

// Drop ends all processes when the last reactor is told to drop what is left.
func (x *place) Drop() {
	r := x.reactor
	if r == nil {
		return
	}
	r.dropping.Store(true)
	r.letGo()
	for _, other := range r.sys.reactors {
		if !other.dropping.Load() {
			return
		}
	}
	if n := r.bury(); n > 0 {
		r.s.Logger().Warn("processes were ended by an order before they had nothing to do", zap.Int("processes", n))
	}
}

// Close ends all processes when the last reactor is closed.
func (x *place) Close() error {
	r := x.reactor
	if r == nil {
		return nil
	}
	r.sys.closed.Store(1)
	r.shut.Store(true)
	for _, other := range r.sys.reactors {
		if !other.shut.Load() {
			return nil
		}
	}
	r.bury()
	return nil
}

// bury ends all processes, now that nobody runs them. It returns how many had something to do.
func (r *reactor) bury() (busy int) {
	for _, other := range r.sys.reactors {
		if other.next != nil {
			other.yield()
		}
		for {
			if _, c := other.queue.tryDequeue(); c == nil {
				break
			}
			busy++
		}
	}
	for i := range r.sys.census {
		for {
			all := r.sys.census[i].all()
			if len(all) == 0 {
				break
			}
			for _, c := range all {
				r.end(c, Stopped)
			}
		}
	}
	return busy
}
