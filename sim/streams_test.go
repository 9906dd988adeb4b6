package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/streamtest"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldStreams plays the suite of Streams with single calls and in batches. A wake-up too many or too early is seen for certain.
func TestWorldStreams(t *testing.T) {
	for name, engine := range map[string]setUps{"single": nil, "batches": inBatches()} {
		for _, local := range []bool{false, true} {
			t.Run(name+", "+map[bool]string{false: "tcp", true: "unix"}[local], func(t *testing.T) {
				t.Parallel()
				streamtest.Run(t, streamtest.Way{Local: local, Play: func(t *testing.T, x streamtest.Scene) { play(t, x, engine, local) }})
			})
		}
	}
}

// play plays a scene of that suite in a world without faults.
func play(t *testing.T, x streamtest.Scene, engine setUps, local bool) {
	w := sim.New(sim.Options{})
	const address, path = "10.0.0.1:7007", "/run/streams"
	at := address
	var socket interface {
		Conns() int
		Setup(*act.Scheduler) error
	} = &service.Listener{Address: address, Handler: x.Handle, Limits: x.Limits}
	if local {
		at, socket = "unix:"+path, &service.Listener{Address: "unix:" + path, Handler: x.Handle, Limits: x.Limits}
	}
	var on *act.Scheduler
	_, err := w.Server("streams", act.Config{}, append(engine, func(s *act.Scheduler) error { on = s; return nil }, socket.Setup)...)
	require.NoError(t, err)
	w.Client(at, func(c *sim.Client) error {
		post := func(f func()) {
			done := false
			require.NoError(t, on.Post(func(*act.Scheduler) { f(); done = true }))
			for !done {
				c.Sleep(10 * time.Microsecond)
			}
		}
		x.Script(&streamtest.Peer{Conn: c, T: t, Local: local, Open: socket.Conns, CloseWrite: c.CloseWrite, Abort: c.Abort, On: post, Pass: c.Sleep,
			Go: func(f func()) { c.Go(func(*sim.Client) error { f(); return nil }) },
			Wait: func(until func() bool) {
				for over := false; !over; c.Sleep(100 * time.Microsecond) {
					post(func() { over = until() })
				}
			}})
		return nil
	})
	require.NoError(t, w.Run())
}
