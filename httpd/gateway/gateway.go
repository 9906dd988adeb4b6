package gateway

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
)

// Gateway passes requests on as its [Table] says: Serve is the Handler of an httpd.Server. It is a service too, of the same
// schedulers: give it to program.Server.Run, or its Setup to act.Run. Call Swap before that.
type Gateway struct {
	table atomic.Pointer[Table]
	mu    sync.Mutex     // of Swap and Setup
	first *act.Scheduler // checks the back ends; nil before Setup
}

// Setup begins the checks of back ends. They end with a shutdown.
func (g *Gateway) Setup(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.table.Load()
	if t == nil {
		return errors.New("gateway: Setup comes after Swap")
	}
	g.first = s
	l := listed.Get(s)
	l.all = append(l.all, g)
	t.watch(s)
	return nil
}

// Swap puts a Table in force. Requests that are under way keep the one that they began with. Back ends that are in both, in a
// group of the same name and with the same settings, keep their connections, their health and their counts. The others are closed
// after the last request of the old Table. It is called before Setup, and later on a goroutine.
func (g *Gateway) Swap(t *Table) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.table.Load()
	t.adopt(old)
	g.table.Store(t)
	if g.first != nil {
		_ = g.first.Post(t.watch) // an error means that the scheduler has ended
	}
	if old != nil {
		old.release()
	}
}

// watch begins to check the back ends that are new.
func (t *Table) watch(s *act.Scheduler) {
	for _, b := range t.backends {
		b.state.log.Store(s.Logger())
		if b.Path != "" && !b.checked {
			b.checked = true
			s.Attach(&checker{b: b})
		}
	}
}

// unused has the forwards of a scheduler that are in no use.
type unused struct{ free []*forward }

var pools = act.NewLocal(func(*act.Scheduler) *unused { return &unused{} })

// mostUnused bounds how many are kept for the next requests.
const mostUnused = 256

// Serve passes a request to a back end: it is a Handler, such as for httpd.Server.Handler.
func (g *Gateway) Serve(w *httpd.Response, r *httpd.Request) act.Action {
	route := g.find(r)
	if route == nil {
		w.StatusOnly(404)
		return nil
	}
	pool := pools.Get(r.Scheduler())
	f := (*forward)(nil)
	if n := len(pool.free); n > 0 {
		f, pool.free = pool.free[n-1], pool.free[:n-1]
	} else {
		f = &forward{}
		f.informs = f.inform // once, since it takes memory
	}
	f.w, f.r, f.route = w, r, route
	return f
}
