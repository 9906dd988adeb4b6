package stage

import (
	"context"
	"sync"
	"time"
)

// goroutines is the host without a Group: a goroutine for each work, and one for heartbeats while there is any work. It also
// polls for tasks that goroutines wait for, whether the engine runs or not.
type goroutines struct {
	e     *Engine
	epoch time.Time
	bell  chan struct{} // for Run
	quiet chan struct{} // for the goroutine of heartbeats: no work is left
	early chan struct{} // for it, too: a heartbeat is wanted at once
	waits *waits

	mu sync.Mutex // of the fields beating and rested of periods
}

func newGoroutines(e *Engine) *goroutines {
	g := &goroutines{e: e, epoch: time.Now()}
	for _, c := range []*chan struct{}{&g.bell, &g.quiet, &g.early} {
		*c = make(chan struct{}, 1)
	}
	g.waits = newWaits(e, g.now)
	g.waits.begin = g.await
	return g
}

func (g *goroutines) now() time.Duration { return time.Since(g.epoch) }

func (g *goroutines) ring() { signal(g.bell) }

func (g *goroutines) settled() { signal(g.quiet) }

func (g *goroutines) heartbeatNow() { signal(g.early) }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (g *goroutines) take(works []*work) {
	for _, w := range works {
		go g.walk(w)
	}
	p := g.e.current()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.beating && g.e.needsHeartbeats() { // the works may have ended already
		p.beating, p.rested = true, make(chan struct{})
		go g.beats(p, p.rested)
	}
}

// rest waits until nothing of p runs but processors.
func (g *goroutines) rest(p *period) {
	g.mu.Lock()
	rested := p.rested
	g.mu.Unlock()
	if rested != nil {
		<-rested
	}
}

// walk takes the steps of w. If the processor calls Goexit, another goroutine goes on.
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
			select {
			case <-time.After(after):
			case <-w.held.Done():
			}
		}
	}
}

// beats sends heartbeats until no work holds a lease, or p has ended. Meanwhile it ends the contexts of works whose lease
// has ended: it does not wait for the answer of the store.
func (g *goroutines) beats(p *period, rested chan<- struct{}) {
	defer close(rested)
	var beats sync.WaitGroup
	defer beats.Wait()
	answers := make(chan bool, 1)
	due, asking := false, false
	t := time.NewTicker(g.e.cfg.Heartbeat)
	defer t.Stop()
	for {
		select {
		case <-p.Done():
			return
		case <-g.quiet:
		case <-g.early:
			due = true
		case answered := <-answers:
			asking = false
			due = due && !answered // one that was due meanwhile is sent at once only if this one has failed
		case <-t.C: // also polls, since an engine that has moved to a Group does not ring here
			due = true
			g.e.expire()
		}
		if g.atRest(p) {
			return
		}
		if due && !asking {
			due, asking = false, true
			beats.Go(func() { answers <- g.e.beat() })
		}
	}
}

// await polls for the tasks that are waited for, on a goroutine until end is called.
func (g *goroutines) await(x *waits) (ring, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	bell := make(chan struct{}, 1)
	await := &poller{name: "await", do: x.poll}
	c := &pollers{e: g.e, now: g.now, all: []*poller{await}}
	go c.run(ctx, bell)
	return func() {
		await.rung.Store(true)
		signal(bell)
	}, cancel
}

// atRest reports whether no work needs heartbeats. Then take starts them again.
func (g *goroutines) atRest(p *period) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.beating = g.e.needsHeartbeats()
	return !p.beating
}
