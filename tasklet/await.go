package tasklet

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Await suspends t until the action a has finished, and then resumes it with Sync. Call it in a SYNC phase:
//
//	return r.Await(t, f.Await())                  // a future
//	return r.Await(t, &listener.Sleep{For: d})    // or any other action
//
// The action becomes a task. If t is resumed for another reason, a is closed. A failure of a is not logged; the next
// phase gets it from [Runner.Err]. If a is dropped or panics, Err returns [act.ErrDropped]. Only the latest Await of a
// tasklet counts. Await returns Wait. It panics when called on a goroutine other than Run's.
func (r *Runner) Await(t Tasklet, a act.Action) Directive {
	requireComparable(t)
	if a == nil {
		panic("tasklet: no action to await")
	}
	c := r.core
	if !c.here() {
		panic("tasklet: Await is for phases on the thread in Run")
	}
	c.mu.Lock()
	e := c.admit(t)
	if e.await != nil {
		c.giveUp(e)
	}
	w := &awaiting{Child: act.Child{Action: a}, e: e}
	e.await, e.awaited = w, nil
	c.suspend(e)
	s2 := c.monitor.s
	c.unlock()
	s2.Spawn(w)
	return Wait
}

// Err returns the error of the action of the tasklet's latest [Runner.Await], or nil if the action was Done or there
// was none. It is for a phase of the tasklet, with the Runner that Task was given.
func (r *Runner) Err() error {
	if r.entry == nil {
		return nil
	}
	r.core.mu.Lock()
	defer r.core.mu.Unlock()
	return r.entry.awaited
}

// awaiting is a task that resumes e when its action has finished. It is no longer wanted when e.await is another.
type awaiting struct {
	act.Child
	e     *entry
	waker act.Waker // belongs to the thread in Run
}

func (w *awaiting) Act(t *act.Task) act.Directive {
	w.waker = t.Waker()
	w.e.core.mu.Lock()
	wanted := w.e.await == w
	w.e.core.mu.Unlock()
	if !wanted {
		return act.Done
	}
	d := w.Child.Act(t)
	switch d {
	case act.Done:
		w.finish(nil)
	case act.Failed:
		w.finish(t.Err())
		return act.Done
	}
	return d
}

func (w *awaiting) finish(err error) {
	e, c := w.e, w.e.core
	c.mu.Lock()
	if e.await == w {
		e.await, e.awaited = nil, err
		c.resume(e, Sync)
	}
	c.unlock()
}

// Stop forwards the shutdown request to the action.
func (w *awaiting) Stop(t *act.Task, o shutdown.Order) {
	w.Child.Stop(t, origin(o))
}

// Abandon resumes e. The action is left to the function that it has offloaded.
func (w *awaiting) Abandon() act.Action {
	w.finish(act.ErrDropped)
	return w.Child.Abandon()
}

// Close resumes e if the action has not finished, and closes the action.
func (w *awaiting) Close() error {
	w.finish(act.ErrDropped)
	return w.Child.Close()
}
