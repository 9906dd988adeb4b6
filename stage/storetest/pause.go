package storetest

import (
	"sync/atomic"

	"github.com/daimon-go/daimon/stage"
)

// testPause pauses kinds with tasks, and one without. That no condition of a task makes a difference, testRequests shows.
func testPause(f *fixture) {
	paused := func(want ...string) {
		f.t.Helper()
		for _, s := range []stage.Store{f.a, f.b} {
			kinds, err := s.Paused(f.ctx)
			f.NoError(err)
			f.Equal(want, append([]string{}, kinds...))
		}
	}
	held, id, other := f.claimed("b"), f.enqueue("b"), f.enqueue("a")
	const strange = `Ü'"\`
	paused([]string{}...)
	f.no(f.a.SetPaused(f.ctx, "b", false))
	for _, kind := range []string{strange, "b", "B", "none"} {
		f.yes(f.a.SetPaused(f.ctx, kind, true))
		f.no(f.b.SetPaused(f.ctx, kind, true))
	}
	paused("B", "b", "none", strange) // in the order of bytes
	f.Equal([]stage.ID{other}, ids(f.claims(10, "a", "b", strange)))

	// The holder goes on, and so do requests.
	_, err := f.a.Enter(f.ctx, held.Lease(), "NEXT", 0)
	f.NoError(err)
	beats, err := f.a.Heartbeat(f.ctx, []stage.Renewal{{Lease: held.Lease()}}, length)
	f.NoError(err)
	f.Equal([]stage.Beat{{Renewed: true}}, beats)
	f.NoError(f.a.Finish(f.ctx, held.Lease(), stage.Passage{From: "NEXT", To: done, Last: true}, nil))
	f.yes(f.suspend(id))
	f.yes(f.resume(id))
	late := f.enqueue("b")
	f.Empty(f.claims(10, "b"))

	f.yes(f.b.SetPaused(f.ctx, "b", false))
	f.no(f.a.SetPaused(f.ctx, "b", false))
	f.yes(f.a.SetPaused(f.ctx, strange, false))
	paused("B", "none")
	f.Equal([]stage.ID{id, late}, ids(f.claims(10, "b")))
}

// testPauseAtOnce pauses a kind while many claim its tasks, under leases that end at once. When the pause has begun, what was
// claimed is to be seen, and there are no more claims.
func testPauseAtOnce(f *fixture) {
	for range 3 * goroutines {
		f.enqueue("a")
	}
	seen := func() (all []stage.Lease) {
		tasks, err := f.b.List(f.ctx, stage.Selection{})
		f.NoError(err)
		for _, t := range tasks {
			all = append(all, t.Lease())
		}
		return all
	}
	for range 20 {
		var errs [goroutines]error
		var claims atomic.Int64
		var paused atomic.Bool
		begun := make(chan struct{})
		wait := start(goroutines, func(i int) {
			for last := false; !last && errs[i] == nil; {
				last = paused.Load()
				var claimed []stage.Task
				claimed, errs[i] = f.side(i).Claim(f.ctx, stage.Claim{Kinds: []string{"a"}, Limit: 1})
				if len(claimed) == 1 && claims.Add(1) == goroutines {
					close(begun)
				}
			}
		})
		select {
		case <-begun:
		case <-f.ctx.Done():
		}
		made, err := f.a.SetPaused(f.ctx, "a", true)
		then := seen()
		paused.Store(true)
		wait()
		f.yes(made, err)
		for _, err := range errs {
			f.NoError(err)
		}
		f.Equal(then, seen())
		f.yes(f.b.SetPaused(f.ctx, "a", false))
	}
}
