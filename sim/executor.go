package sim

import (
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
)

// executor runs offloaded functions on the world's goroutine, at times that it draws.
type executor struct{ w *World }

func (x *executor) Execute(f func()) {
	w := x.w
	late := w.dice[network].duration(time.Microsecond, time.Millisecond)
	if w.fault(lateOffload, nil) {
		late = w.lasts(time.Millisecond, time.Minute)
	}
	w.after(late, f)
}

// Reserve returns an executor for functions that may block, as many as there are.
func (x *executor) Reserve(int) act.Executor { return blocking{x} }

// blocking is an executor for functions that may block. They are routines, and block by Wait, for which package
// internal/lane looks.
type blocking struct{ x *executor }

func (b blocking) Execute(f func()) {
	w := b.x.w
	b.x.Execute(func() {
		w.begun++
		r := &routine{w: w, id: w.begun}
		r.run = func() {
			f()
			w.functions = slices.DeleteFunc(w.functions, func(o *routine) bool { return o == r })
		}
		w.functions = append(w.functions, r)
		r.step()
	})
}

func (b blocking) Wait(until func() bool) { b.x.w.await(until) }
