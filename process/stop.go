package process

import (
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// heed notes whether there is an order.
func (r *reactor) heed(t *act.Task) {
	if r.dropping.Load() {
		r.dropping.Store(false)
	}
	if r.ordered = t.Order() != nil; !r.ordered && r.told != nil {
		r.sys.order.CompareAndSwap(r.told, nil) // it is spent
		r.told = nil
	}
}

// Stop tells the processes that want to be told, those that were made here. All others go on with what they are sent.
// When nothing is ready any more the System holds Run no longer; processes that sleep then go on in a later Run, or
// end when the Group is closed.
func (r *reactor) Stop(_ *act.Task, o shutdown.Order) {
	r.told = &o
	r.sys.order.Store(&o)
	for _, c := range r.sys.census[r.s.Index()].all() {
		if c.body.stops() && c.call(told) {
			r.enqueue(c)
		}
	}
}

// Drop ends all processes when the last reactor is told to drop what is left, also those that sleep.
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
	if cut := r.bury(); cut > 0 {
		r.s.Logger().Warn("processes were cut short by an order", zap.Int("processes", cut))
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

// bury ends all processes, now that nobody runs them. It returns how many had something to do. The end of one may make
// others ready: they are queued, which wakes nobody here, and forgotten last.
func (r *reactor) bury() (busy int) {
	r.sys.burying.Store(1)
	for i := range r.sys.census {
		for all := r.sys.census[i].all(); len(all) > 0; all = r.sys.census[i].all() {
			for _, c := range all {
				if c.word.Load()&states != sleeping {
					busy++
				}
				r.end(c, Stopped)
			}
		}
	}
	r.sys.burying.Store(0)
	for _, other := range r.sys.reactors {
		other.next = nil
		other.forget()
	}
	return busy
}

// forget empties the queue of those who have ended. Others are newer than the end of all: they are for a later Run.
func (r *reactor) forget() {
	for n := r.queue.length(); n > 0; {
		ok, c := r.queue.tryDequeue()
		switch {
		case c != nil && c.word.Load()&states != dead:
			r.sys.scatter(c)
			fallthrough
		case ok:
			n--
		}
	}
}
