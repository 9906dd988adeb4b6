package service

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// acceptsATurn bounds what a service accepts in one turn.
const acceptsATurn = 64

// lastAccepts bounds what each scheduler still accepts once it has been told of an order: as many as a backlog
// usually holds (net.core.somaxconn). Clients that go on connecting do not keep it alive. It is a variable so
// that a test need not connect so many.
var lastAccepts = 4096

// socket is what TCP and Unix have in common. It is made anew by the first Setup of each Group.
type socket struct {
	mu     sync.Mutex
	group  *act.Group
	addr   net.Addr
	places *monitor.Account
	homes  map[*act.Scheduler]bool // those with an open port, all of one Group
	last   func()                  // called when the last of them is closed
}

// open takes the part of the service for one scheduler: the first of a Group, or a further one.
func (k *socket) open(s *act.Scheduler, o opening) error {
	if o.handler == nil {
		panic("service: without a Handler")
	}
	e, err := monitor.Engine(s)
	if err != nil {
		return err
	}
	port, err := k.port(e, o)
	if err != nil {
		return err
	}
	s.Install(&acceptor{ // without the lock: a Trace may ask for its name
		accept: listener.Accept{
			Port:   port,
			Source: e.NewSource(o.network, k.places),
			Maker:  listener.NewMaker(s, o.limits),
			Places: k.places,
		},
		handler: o.handler,
		socket:  k,
		home:    s,
	})
	return nil
}

// port opens a port for the scheduler of e. listen is called with the address that the first was bound
// to, nil for the first.
func (k *socket) port(e *monitor.IO, o opening) (*monitor.Port, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := e.Scheduler()
	switch {
	case len(k.homes) == 0:
		k.group, k.addr, k.places = s.Group(), nil, monitor.NewAccount(o.max)
		k.homes = map[*act.Scheduler]bool{}
	case k.group != s.Group():
		return nil, errElsewhere
	case k.homes[s]:
		return nil, errTwice
	}
	port, err := o.listen(e, k.addr)
	if err != nil {
		return nil, err
	}
	k.addr = port.Addr()
	k.homes[s] = true
	return port, nil
}

// opening is what TCP and Unix do not have in common.
type opening struct {
	network string
	max     int
	limits  listener.Limits
	handler func(*listener.Conn) act.Action
	listen  func(e *monitor.IO, bound net.Addr) (*monitor.Port, error)
}

var (
	errElsewhere = errors.New("the service runs in another Group")
	errTwice     = errors.New("the service was already set up on this scheduler")
)

// shut is called when the port of s was closed.
func (k *socket) shut(s *act.Scheduler) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.homes, s); len(k.homes) == 0 && k.last != nil {
		k.last()
		k.last = nil
	}
}

// Addr is what was bound, also after the end; nil before Setup. Any goroutine.
func (k *socket) Addr() net.Addr {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.addr
}

// Open is how many connections there are, lingering ones included. Any goroutine.
func (k *socket) Open() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.places == nil {
		return 0
	}
	return k.places.Open()
}

// acceptor is the demon of a service on one scheduler.
type acceptor struct {
	accept  listener.Accept
	handler func(*listener.Conn) act.Action
	socket  *socket
	home    *act.Scheduler
	told    bool
	late    int // accepted since it was told
}

// Act accepts what there is, at most acceptsATurn connections. Once told of an order it takes those that
// are in the backlog, whose clients believe to be connected, at most lastAccepts, and ends; those above
// MaxConns it leaves.
func (a *acceptor) Act(t *act.Task) act.Directive {
	for range acceptsATurn {
		d := a.accept.Act(t)
		if d == act.Wait && a.told {
			return act.Done
		}
		if d == act.Yield {
			continue
		}
		if d != act.Done {
			return d
		}
		t.Scheduler().Spawn(&session{conn: a.accept.Conn(), handler: a.handler})
		if a.told {
			if a.late++; a.late == lastAccepts {
				return act.Done
			}
		}
	}
	return act.Yield
}

// Stop has it end.
func (a *acceptor) Stop(*act.Task, shutdown.Order) {
	a.told = true
	a.accept.Port.Look()
}

// Close stops listening.
func (a *acceptor) Close() error {
	err := a.accept.Port.Close()
	a.socket.shut(a.home)
	return err
}

func (a *acceptor) String() string { return fmt.Sprintf("service on %v", a.socket.Addr()) }
