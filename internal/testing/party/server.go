package party

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// noise is the source of all contents. A byte in the wrong place is noticed.
var noise = func() []byte {
	all := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(all)
	return all
}()

// Noise returns the 1 MiB of which Content is a part.
func Noise() []byte { return noise }

// Content draws n bytes.
func Content(r *rand.Rand, n int) []byte {
	from := r.IntN(len(noise) - n + 1)
	return noise[from : from+n : from+n]
}

// Lasting are the faults of a network in which connections last, and what is sent arrives soon.
func Lasting() sim.Faults {
	return sim.Anything().Without("reset", "aborted connection", "no memory", "no descriptors",
		"refused connect", "connect timed out", "slow segment", "clogged link")
}

// Gentle are Lasting faults, with more of single calls.
func Gentle() sim.Faults {
	return Lasting().With(65536/10, "short read", "short write", "false empty", "false full")
}

// Limits draws the limits of a connection. Their Linger is long enough for slow clients.
func Limits(w *sim.World) listener.Limits {
	high := Pick(w, 0, 1000, 20_000)
	return listener.Limits{Read: Pick(w, 0, 1000, 5000), High: high, Low: high / Pick(w, 2, 10), Linger: time.Hour}
}

// setUps are set-up functions of a server.
type setUps = []func(*act.Scheduler) error

// Engine draws the set-up functions that come first. They choose how system calls are made.
func Engine(w *sim.World) setUps { return Pick(w, nil, setUps{monitor.Use(monitor.Uring)}) }

// ErrOnPurpose is the value with which handlers panic that are meant to.
var ErrOnPurpose = errors.New("on purpose")

// Config draws the config of a server. Panics that are not on purpose fail the world.
func Config(w *sim.World) act.Config {
	return act.Config{Schedulers: Pick(w, 1, 2, 3), TurnsPerPass: Pick(w, 0, 1, 8), Inbox: Pick(w, 2, 256),
		Trace: &act.Trace{Ended: func(_ *act.Task, err error) {
			if p := (*act.Panic)(nil); errors.As(err, &p) && p.Value != ErrOnPurpose {
				w.Errorf("%v\n%s", p, p.Stack)
			}
		}}}
}

// Order is the order of a server to end, if it gets one.
type Order struct {
	world *sim.World
	Given bool
	At    time.Duration // when
	Terms shutdown.Policy
}

// MayEnd shuts a server down in half of the worlds, by a request of any kind and at any time below one of some
// bounds.
func MayEnd(w *sim.World, v *sim.Server, within ...time.Duration) *Order {
	o := &Order{world: w}
	bound := 1 + Below(w.Rand(), time.Second)
	terms := Pick(w, shutdown.Policy{Kind: shutdown.Unbounded}, shutdown.Policy{Kind: shutdown.Unbounded}, shutdown.Policy{Kind: shutdown.Halt, Drop: true},
		shutdown.Policy{Time: bound, Drop: true}, shutdown.Policy{Turns: 1 + w.Rand().IntN(5), Time: bound, Drop: true})
	terms.Spread = Pick(w, 0, 0, time.Second, 10*time.Second)
	terms.Announce = Pick(w, 0, 0, 0, 100*time.Millisecond, 5*time.Second)
	at := Below(w.Rand(), Pick(w, within...))
	if w.Rand().IntN(2) == 0 {
		w.At(at, func() { o.Give(v, terms) })
	}
	return o
}

// Give gives a server this shutdown request.
func (o *Order) Give(v *sim.Server, terms shutdown.Policy) {
	o.Given, o.At, o.Terms = true, o.world.Now(), terms.Resolved()
	v.Shutdown(terms)
}

// MayCut reports whether the shutdown now lets the server cut connections.
func (o *Order) MayCut() bool {
	switch {
	case !o.Given, o.Terms.Kind == shutdown.Unbounded:
		return false
	case o.Terms.Kind == shutdown.Bounded && o.Terms.Turns == 0:
		return o.world.Now() >= o.At+o.Terms.Time
	}
	return true
}

// Happened requires that something has happened in any of the worlds of a test, without which the test would show nothing. In
// fewer than 40 worlds, by SIM_SEEDS or SIM_SEED, it need not happen.
func Happened(t testing.TB, what string, times int) {
	t.Helper()
	few := os.Getenv("SIM_SEED") != ""
	if n, err := strconv.Atoi(os.Getenv("SIM_SEEDS")); err == nil && n < 40 {
		few = true
	}
	if times == 0 && !few {
		t.Errorf("in no world %s", what)
	}
}
