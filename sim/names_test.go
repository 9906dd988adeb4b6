package sim_test

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// dial is what a program asks of a name in one of the styles. It calls over with the connection, or with why there is none;
// the connection is open during the call.
type dial struct {
	address string
	within  time.Duration
	filter  listener.Filter
	over    func(*listener.Conn, error)
}

// styles are the set-up functions of a program that dials, an action, a coroutine and a process.
var styles = map[string]func(d dial) setUps{
	"action": func(d dial) setUps {
		return setUps{func(s *act.Scheduler) error {
			s.Spawn(&dialling{act.Child{Action: d.action()}, d})
			return nil
		}}
	},
	"coroutine": func(d dial) setUps {
		return setUps{func(s *act.Scheduler) error {
			s.Spawn(coro.New(func(co *coro.Co) error {
				err := co.Within(d.within, func() error {
					c, err := coro.Dial(co, d.address, listener.Limits{}, d.filter)
					if err == nil {
						d.over(c.Under(), nil)
						_ = c.Close()
					}
					return err
				})
				if err != nil {
					d.over(nil, err)
				}
				return nil
			}))
			return nil
		}}
	},
	"process": func(d dial) setUps {
		sys := process.New()
		return setUps{sys.Setup, func(s *act.Scheduler) error {
			return process.Spawn(sys, process.Handler[error](func(p *process.Self[error], m error) {
				switch m {
				case errBegin:
					process.Do(p, d.action(), func(failure error) error { return failure })
					return
				case nil:
				default:
					d.over(nil, m)
				}
				p.Exit()
			}), process.Options{}).Send(sys, errBegin)
		}}
	},
}

var errBegin = errors.New("begin")

type dialling struct {
	act.Child
	d dial
}

func (x *dialling) Act(t *act.Task) act.Directive {
	v := x.Child.Act(t)
	if v == act.Failed {
		x.d.over(nil, t.Err())
		return act.Done
	}
	return v
}

func (d dial) action() act.Action {
	c := &listener.Connect{Address: d.address, Filters: []listener.Filter{d.filter}}
	return act.Seq(listener.Within(d.within, c), act.Func(func(*act.Task) act.Directive {
		conn := c.Conn()
		d.over(conn, nil)
		_ = conn.Close()
		return act.Done
	}))
}

// hosts adds a server at some addresses; of the others mute ones do not answer, late ones do so after 400 ms, and dead
// ones refuse.
func hosts(t *testing.T, w *sim.World) {
	up := setUps{}
	for _, at := range []string{"10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"} {
		up = append(up, (&service.Listener{Address: net.JoinHostPort(at, "80"), Handler: func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive { _, err := c.Peek(1); return c.Next(t, err) })
		}}).Setup)
	}
	_, err := w.Server("hosts", act.Config{}, up...)
	require.NoError(t, err)
	w.Delay("10.0.0.2", 400*time.Millisecond)
	w.Delay("fd00::2", 400*time.Millisecond)
	w.Delay("10.9.9.1", time.Hour)
	w.Delay("fd99::1", time.Hour)
	w.Delay("fd99::2", time.Hour)
}

const good4, late4, mute4, dead4, dead4b = "10.0.0.1", "10.0.0.2", "10.9.9.1", "10.6.6.1", "10.6.6.2"
const good6, late6, mute6, mute6b, dead6 = "fd00::1", "fd00::2", "fd99::1", "fd99::2", "fd66::1"

// TestNamesWithSeveralAddresses follows RFC 8305 in each style, with single calls and in batches.
func TestNamesWithSeveralAddresses(t *testing.T) {
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		addresses []string
		after     time.Duration
		winner    string        // "": none
		tried     []string      // in this order, if all refuse
		within    time.Duration // 0: an hour
	}{
		"the first answers":         {addresses: []string{good6, good4}, winner: good6},
		"the first is mute":         {addresses: []string{mute4, good4}, after: 250 * ms, winner: good4},
		"two are mute":              {addresses: []string{mute6, mute4, good6}, after: 500 * ms, winner: good6},
		"a slow one is overtaken":   {addresses: []string{late4, good6}, after: 250 * ms, winner: good6},
		"a slow one wins":           {addresses: []string{late6, mute4}, after: 400 * ms, winner: late6},
		"a refusal hurries":         {addresses: []string{dead4, dead6, dead4b, good6}, winner: good6},
		"a refusal behind a wait":   {addresses: []string{mute4, dead6, good4}, after: 250 * ms, winner: good4},
		"families in turn":          {addresses: []string{mute6, mute6b, good4}, after: 250 * ms, winner: good4},
		"no more than 16 at a time": {addresses: append(slices.Repeat([]string{mute4}, 16), good4), after: 127 * time.Second, winner: good4},
		"all refuse":                {addresses: []string{dead4, dead4b, dead6}, tried: []string{dead4, dead6, dead4b}},
		"none in time":              {addresses: []string{mute4, mute6, mute6b}, after: 2 * time.Second, within: 2 * time.Second},
	} {
		for style, program := range styles {
			for _, engine := range []setUps{nil, inBatches()} {
				t.Run(fmt.Sprintf("%s, %s, %d", name, style, len(engine)), func(t *testing.T) {
					w := sim.New(sim.Options{Storm: time.Hour})
					hosts(t, w)
					w.Host("name", row.addresses...)
					over, filtered := 0, ""
					d := dial{address: "name:80", within: cmp.Or(row.within, time.Hour), filter: func(c *listener.Conn) act.Action {
						filtered += host(c)
						return nil
					}, over: func(c *listener.Conn, err error) {
						over++
						require.WithinRange(t, time.Time{}.Add(w.Now()), time.Time{}.Add(row.after), time.Time{}.Add(row.after+100*time.Millisecond))
						switch {
						case row.winner != "":
							require.NoError(t, err)
							require.Equal(t, row.winner, host(c))
						case row.tried == nil:
							require.ErrorIs(t, err, os.ErrDeadlineExceeded)
						default:
							want := "dial tcp name:80: "
							for _, a := range row.tried {
								want += "dial tcp " + net.JoinHostPort(a, "80") + ": connection refused; "
							}
							require.EqualError(t, err, strings.TrimSuffix(want, "; "))
						}
					}}
					_, err := w.Server("program", act.Config{}, append(engine, program(d)...)...)
					require.NoError(t, err)
					w.At(3*time.Second+row.after, func() {})
					require.NoError(t, w.Run(), "and nothing is left open")
					require.Equal(t, 1, over)
					require.Equal(t, row.winner, filtered, "filters begin when there is a winner")
				})
			}
		}
	}
}

// TestWorldNames has programs dial names while faults happen, and orders come. Whoever wins, and however a dial ends, nothing
// is left open, and a dial fails only when its time is over or all addresses have failed.
func TestWorldNames(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		hosts(t, w)
		for i := range 4 {
			addresses := []string{good4, late4, mute4, dead4, good6, late6, mute6, dead6}
			w.Rand().Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
			addresses = addresses[:1+w.Rand().IntN(len(addresses))]
			name := fmt.Sprint("name", i)
			w.Host(name, addresses...)
			ordered := false
			d := dial{address: name + ":80", within: pick(w, time.Second, time.Minute, time.Hour)}
			d.filter = func(*listener.Conn) act.Action {
				return pick[act.Action](w, nil, &listener.Sleep{For: time.Millisecond})
			}
			d.over = func(c *listener.Conn, err error) {
				if c != nil || ordered || w.Now() >= min(d.within, time.Minute) {
					return
				}
				for _, a := range addresses {
					if !strings.Contains(err.Error(), net.JoinHostPort(a, "80")) {
						w.Errorf("the dial of %s fails without a word of %s: %v", name, a, err)
					}
				}
			}
			program := styles[pick(w, "action", "coroutine", "process")](d)
			v, err := w.Server("program "+name, act.Config{Schedulers: pick(w, 1, 2)}, append(anyEngine(w), program...)...)
			require.NoError(t, err)
			if terms, given := order(w); given {
				w.At(time.Duration(w.Rand().Int64N(int64(time.Second))), func() {
					ordered = true
					v.Shutdown(terms)
				})
			}
		}
		w.At(time.Minute, func() {}) // and then the world ends them
	})
}

func host(c *listener.Conn) string {
	ip, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return ip
}
