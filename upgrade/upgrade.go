package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Upgrade replaces this program by a newer one, and takes over from an older one. The Server of package program has one.
// Without it, Inherit comes before the set-up functions of the services, and Setup is the last set-up function:
//
//	u := &upgrade.Upgrade{Services: []any{web}}
//	if err := u.Inherit(); err != nil { … }
//	err := act.Run(ctx, cfg, web.Setup, u.Setup)
//	u.Close(err)
//
// The fields must not be changed from Inherit on.
type Upgrade struct {
	// Services pass their sockets and states on to the new program: services of package service, an inspect.Inspector,
	// and each [Keeper]. Other values are ignored.
	Services []any
	// Signal is the signal that starts an upgrade. nil means SIGUSR2.
	Signal os.Signal
	// Program is the path of the new binary; "" means the path by which this process was started. It is looked up
	// again: a link, or a name in PATH, may lead to another file by then. Set Program if the program changes its root
	// (chroot), or if it was started by a relative path and changes its directory. If this process was started by a name
	// that is not in PATH (exec -a), the file that it runs counts.
	Program string
	// Timeout is how long the new program may take until it serves; 0 means a minute. Then it is killed, and this
	// program goes on.
	Timeout time.Duration
	// Terms is the shutdown policy of the old program. Announce is ignored, since the new program serves. A Spread of 0
	// means 10 s: a request that arrives in that time is answered, and the answer says that the connection closes. A
	// request that is sent while the server closes its idle connection is lost. With 1, a nanosecond, idle connections
	// are closed at once: see docs/ending.md.
	Terms shutdown.Policy

	predecessor predecessor
	unclaimed   []string // sockets that were passed on and belong to no service
	keepers     []Keeper

	group   *act.Group
	log     *zap.Logger
	pending sync.WaitGroup  // calls of Start by signals
	setUp   sync.Mutex      // held by Setup, and by Start, which may come too early
	one     sync.Mutex      // held by Start, and until all Keepers have returned: there is one upgrade at a time
	states  []*state        // that were asked for in this one
	living  context.Context // cancelled by end
	end     func()          // ends an upgrade that is under way
}

// Setup is a set-up function for [act.Run], the last one. If an older program has started this one, Setup reports to it
// that this one is ready, and blocks until the older program lets it accept. From then on Signal starts an upgrade.
func (u *Upgrade) Setup(s *act.Scheduler) error {
	if schedulers := s.Group().Schedulers(); s.Index() < len(schedulers)-1 {
		return nil
	}
	u.setUp.Lock()
	defer u.setUp.Unlock()
	u.group, u.log = s.Group(), s.Logger()
	living, end := context.WithCancelCause(context.Background())
	u.living, u.end = living, func() { end(errEnding) }
	s.Attach(watch{u.end})
	if sig := u.signal(); sig != nil {
		if err := monitor.OnSignal(signalled{u}, sig)(u.group.Schedulers()[0]); err != nil {
			return err
		}
	}
	for _, x := range u.unclaimed {
		u.log.Warn("a listening socket that was passed on belongs to no service, and is closed", zap.String("socket", x))
	}
	if err := u.predecessor.takeOver(u); err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	return nil
}

func (u *Upgrade) signal() os.Signal { return cmp.Or(u.Signal, usual) }

var errEnding = errors.New("this program is ending")

// watch ends upgrades with the first shutdown request.
type watch struct{ end func() }

func (w watch) Act(*act.Task) act.Directive    { return act.Wait }
func (w watch) Stop(*act.Task, shutdown.Order) { w.end() }
func (w watch) Describe(d *act.Description)    { d.WaitsFor("a shutdown") }
func (w watch) String() string                 { return "upgrade" }

// signalled starts an upgrade for each signal.
type signalled struct{ *Upgrade }

// Signal is called on a goroutine of its own. It does not wait, so that a second signal is answered at once.
func (u signalled) Signal(os.Signal) {
	u.pending.Go(func() {
		if err := u.Start(); err != nil {
			u.log.Error("this program was not replaced", zap.Error(err))
		}
	})
}

// terms returns Terms with their defaults, and without Announce.
func (u *Upgrade) terms() shutdown.Policy {
	p := u.Terms.Resolved()
	p.Announce = 0
	if p.Spread == 0 && p.Kind != shutdown.Halt {
		p.Spread = 10 * time.Second
	}
	return p
}

// ending reports whether this program shuts down, even if that is only announced: the new one would not know of it.
func (u *Upgrade) ending() bool { return u.living.Err() != nil || u.group.Order() != nil }

// Close ends an upgrade that is under way. If an older program waits for this one, Close tells it that this one has failed with
// err. Close is called when Run has returned, or if a service could not be set up.
func (u *Upgrade) Close(err error) {
	u.predecessor.refuse(err)
	if u.end != nil {
		u.end()
	}
	u.pending.Wait()
}

// Start starts the new program, and waits until it has taken over. Then this program begins to shut down, by a [shutdown.Order]
// whose method Replaced() bool returns true, and Start returns nil. After an error this program goes on as before. It is an
// error if a shutdown is announced or in force. Start blocks; any goroutine may call it, except a scheduler's.
func (u *Upgrade) Start() error {
	if !u.one.TryLock() {
		return errors.New("upgrade: one is under way")
	}
	u.setUp.Lock()
	defer u.setUp.Unlock()
	pid, err := u.replace()
	if err != nil {
		u.settle(err)
		return fmt.Errorf("upgrade: %w", err)
	}
	for _, l := range handover.Listeners(u.Services) {
		l.Give()
	}
	u.settle(nil)
	u.log.Info("replaced", zap.Int("by process", pid))
	u.group.Shutdown(handover.Replaced{PID: pid, Terms: u.terms()})
	return nil
}
