package service

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/logs"
	"github.com/daimon-go/daimon/internal/resource"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// config is a Listener on one scheduler, after the defaults.
type config struct {
	*Listener
	limits     listener.Limits
	evictAfter time.Duration
	replaced   *config // of a connection whose action was replaced: only the new action knows when it is idle

	name string         // of the service, for package inspect: valid UTF-8, which the path of a Unix socket need not be
	row  *facts.Service // of this scheduler: what was counted there
}

// setUp begins to accept on one scheduler: the first of a Group, or a further one.
func (v *Listener) setUp(s *act.Scheduler) error {
	limits, err := v.check()
	if err != nil {
		return err
	}
	c := &config{Listener: v, limits: limits, evictAfter: v.EvictAfter, row: &facts.Service{}}
	allEnded.Get(s) // while the scheduler is open
	demons, err := v.listen(s, c)
	if err != nil {
		return err
	}
	if s.Index() == len(s.Group().Schedulers())-1 { // the last one sees how many descriptors the others have left
		if err := resource.SpareDescriptor(); err != nil {
			for _, a := range demons {
				_ = a.Close() // the error that matters is the other one
			}
			return fmt.Errorf("no descriptor is left for connections: %w; allow more (ulimit -n), or use fewer schedulers", err)
		}
	}
	c.name = logs.Text(v.Addr().Network() + " " + v.Addr().String())
	other := *c
	other.evictAfter, other.replaced = 0, &other
	c.replaced = &other
	for _, a := range demons {
		if v.AtEnd == LastOfAll { // without the lock: a Trace may ask for its name
			s.Internals().InstallLast(a)
		} else {
			s.Install(a)
		}
	}
	return nil
}

// check returns the Limits with their defaults, and what is wrong with the fields.
func (v *Listener) check() (l listener.Limits, err error) {
	switch {
	case v.Handler == nil:
		err = errors.New("there is no Handler")
	case slices.ContainsFunc(v.Filters, func(f listener.Filter) bool { return f == nil }):
		err = errors.New("a Filter is nil")
	case v.FilterTimeout < 0:
		err = fmt.Errorf("FilterTimeout is negative: %v", v.FilterTimeout)
	case v.AtEnd > LastOfAll:
		err = fmt.Errorf("AtEnd has no value %d", v.AtEnd)
	case v.Backlog < 0:
		err = fmt.Errorf("a negative Backlog: %d", v.Backlog)
	default:
		return v.Limits.Resolved()
	}
	return l, err
}

// mostConns bounds the default of MaxConns.
const mostConns = 1 << 20

// placesFor returns how many connections fit into the descriptors and the memory of the process; 0 means unknown.
func placesFor(descriptors int, memory int64, l listener.Limits) int {
	n := mostConns
	if descriptors > 0 {
		n = min(n, descriptors-descriptors/64-24)
	}
	if memory > 0 {
		n = int(min(int64(n), memory/2/int64(l.Read+l.High)))
	}
	return max(1, n/l.Conns)
}

// listen returns the demons of one scheduler, which listen.
func (v *Listener) listen(s *act.Scheduler, c *config) (demons []*acceptor, err error) {
	e, err := monitor.EngineOf(s)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	first, err := v.begin(s)
	if err != nil {
		return nil, err
	}
	var descriptors int
	var memory int64
	places := v.MaxConns
	if first {
		if places == 0 {
			descriptors, memory = resource.Descriptors(), resource.Memory()
			places = placesFor(descriptors, memory, c.limits)
		}
		v.limiter = engine.NewLimiter(places)
	}
	o := engine.ListenOptions{Addr: v.addr, Backlog: v.Backlog, Prepare: v.prepare, Limiter: v.limiter,
		ConnOptions: engine.ConnOptions{KeepAlive: v.KeepAlive, ReceiveBuffer: c.limits.ReceiveBuffer, SendBuffer: c.limits.SendBuffer}}
	if v.addr == nil && v.inherited == nil {
		if o.Addr, err = resolve("tcp", v.Address); err != nil {
			return nil, err
		}
	}
	for _, o := range v.places(s, o) {
		a := &acceptor{options: o, config: c, server: v, home: s}
		if v.inherited == nil || o.Inherited != 0 || v.inherited.Shared {
			if a.from, err = e.Listen(o); err != nil {
				for _, a := range demons {
					_ = a.from.Close() // the error that matters is the other one
				}
				return nil, err
			}
			v.addr = a.from.Addr()
		}
		demons = append(demons, a)
	}
	v.demons = append(v.demons, demons...)
	if v.MaxConns == 0 && first {
		s.Logger().Info(fmt.Sprintf("at most %d connections on %v, as MaxConns is not set", places, v.addr),
			zap.Int("descriptors", descriptors), zap.Int64("memory", memory))
	}
	return demons, nil
}

// most returns MaxConns as it was resolved; 0 means no bound.
func (v *Listener) most() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.limiter.Max()
}
