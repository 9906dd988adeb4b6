package stage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// goroutines is the host without a Group: a goroutine for each task that is worked on, and one for the heartbeats
// while there is any.
type goroutines struct {
	e     *Engine
	epoch time.Time
	bell  chan struct{} // for Run
	look  chan struct{} // for the heart

	mu sync.Mutex // of what lives have of their hearts
}

func newGoroutines(e *Engine) *goroutines {
	return &goroutines{e: e, epoch: time.Now(), bell: make(chan struct{}, 1), look: make(chan struct{}, 1)}
}

func (g *goroutines) now() time.Duration { return time.Since(g.epoch) }

func (g *goroutines) ring() {
	for _, c := range []chan struct{}{g.bell, g.look} {
		select {
		case c <- struct{}{}:
		default: // it rings already
		}
	}
}

func (g *goroutines) take(works []*work) {
	for _, w := range works {
		go g.walk(w)
	}
	if len(works) == 0 {
		return
	}
	l := g.e.living()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !l.beating {
		l.beating, l.rested = true, make(chan struct{})
		go g.heart(l, l.rested)
	}
}

// rest waits until nothing of l runs but processors.
func (g *goroutines) rest(l *life) {
	g.mu.Lock()
	rested := l.rested
	g.mu.Unlock()
	if rested != nil {
		<-rested
	}
}

// walk takes the steps of w. A processor that calls Goexit takes the goroutine with it: another goes on.
func (g *goroutines) walk(w *work) {
	defer func() {
		if w.over() {
			g.e.remove(w)
		} else {
			go g.walk(w)
		}
	}()
	for !w.over() {
		if after := w.step(); after > 0 {
			pause(w.held, after)
		}
	}
}

// pause waits for d, or until ctx has ended.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// heart beats until nobody holds a lease, or l has ended. It does not wait for the store: a lease that ends meanwhile
// has ended.
func (g *goroutines) heart(l *life, rested chan<- struct{}) {
	defer close(rested)
	var beats sync.WaitGroup
	defer beats.Wait()
	var asking atomic.Bool
	t := time.NewTicker(g.e.cfg.Heartbeat)
	defer t.Stop()
	for {
		select {
		case <-l.Done():
			return
		case <-g.look:
			if g.atRest(l) {
				return
			}
		case <-t.C:
			if g.atRest(l) {
				return // whoever has the engine now would not ring here
			}
			g.e.expire()
			if asking.CompareAndSwap(false, true) {
				beats.Go(func() {
					defer asking.Store(false)
					g.e.beat()
				})
			}
		}
	}
}

// atRest ends the heart of l if nobody needs it: who takes works after that makes another.
func (g *goroutines) atRest(l *life) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.beating = g.e.holding()
	return !l.beating
}
