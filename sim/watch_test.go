package sim_test

import (
	"cmp"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldWatch has tasks that watch devices. A device gets things to read at times of the world, and its task reads them until
// there are none; then it waits, at once or later, with the same watch or another one. Whatever it missed would stay unread.
func TestWorldWatch(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		var devices []*device
		v, err := w.Server("watch", act.Config{Schedulers: pick(w, 1, 2)}, append(anyEngine(w), func(s *act.Scheduler) error {
			for range 3 {
				d := &device{w: w}
				devices = append(devices, d)
				s.Spawn(d)
			}
			return nil
		})...)
		require.NoError(t, err)
		for _, d := range devices {
			d.Descriptor = v.Descriptor()
			for at := time.Duration(0); at < 20*time.Second; {
				at += time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, time.Second, 10*time.Second))))
				w.At(at, func() {
					d.unread++
					d.Ready(netpoll.In)
				})
			}
		}
		w.At(time.Minute, func() {
			for i, d := range devices {
				if d.unread > 0 {
					w.Errorf("device %d has %d things that nobody has read", i, d.unread)
				}
			}
			v.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
		})
	})
}

// device is a device, and the task that reads it.
type device struct {
	*sim.Descriptor
	w      *sim.World
	unread int
	empty  bool // as far as the task knows
	watch  *monitor.Watched
	later  act.Timer
}

func (d *device) Act(t *act.Task) act.Directive {
	if t.Order() != nil {
		d.unwatch()
		d.Close()
		return act.Done
	}
	if !d.empty {
		d.Take(netpoll.In)
		d.unread, d.empty = 0, true
	}
	switch d.w.Rand().IntN(4) {
	case 0: // something else comes first, and what arrives meanwhile is reported
		t.WakeAfter(&d.later, time.Duration(d.w.Rand().Int64N(int64(time.Second))))
		return act.Wait
	case 1:
		d.unwatch()
	}
	if d.watch == nil {
		var err error
		if d.watch, err = monitor.Watch(t.Scheduler(), d.FD(), netpoll.In); err != nil {
			return t.Fail(err)
		}
	}
	err := d.watch.Readable()
	_, blocked := err.(act.Blocked)
	d.empty = blocked
	return listener.Next(t, err)
}

func (d *device) unwatch() {
	if d.watch == nil {
		return
	}
	if err := d.watch.Close(); err != nil {
		d.w.Errorf("a watch ends: %w", err)
	}
	d.watch = nil
}

// What is asked for of a device is reported that is ready for everything.
func TestWorldWatchOfOneSide(t *testing.T) {
	for _, want := range []netpoll.Ready{netpoll.In | netpoll.Out, netpoll.In, netpoll.Out} {
		sim.Test(t, func(w *sim.World) {
			var d *sim.Descriptor
			var stop func() error
			var reported netpoll.Ready
			v, err := w.Server("watch", act.Config{Schedulers: 1}, append(anyEngine(w), func(s *act.Scheduler) error {
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					e, err := monitor.EngineOf(s)
					switch {
					case t.Order() != nil:
						err = stop()
						d.Close()
					case stop == nil && err == nil:
						stop, err = e.Watch(d.FD(), want, func(r netpoll.Ready) { reported |= r })
					}
					if err != nil || t.Order() != nil {
						return listener.Next(t, cmp.Or(err, io.EOF))
					}
					return act.Wait
				}))
				return nil
			})...)
			require.NoError(t, err)
			d = v.Descriptor()
			w.At(time.Second, func() { d.Ready(netpoll.In | netpoll.Out) })
			w.At(time.Minute, func() {
				if reported != want {
					w.Errorf("a watch of %v reports %v", want, reported)
				}
				v.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
			})
		})
	}
}
