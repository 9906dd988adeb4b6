// Package sim runs whole servers in a simulated world, in which time, the network, its faults, and the order of
// everything are drawn from one seed. The same seed gives the same history, to the last byte; another gives
// another one. A server is not changed for it: the same set-up functions that act.Run is given are given to
// World.Server.
//
//	func TestServer(t *testing.T) {
//		sim.Test(t, func(w *sim.World) {
//			server := &service.TCP{Address: "10.0.0.1:80", Handler: handle}
//			_, err := w.Server("server", act.Config{Schedulers: 2}, server.Setup)
//			require.NoError(t, err)
//			for range 10 {
//				w.Client("10.0.0.1:80", func(c *sim.Client) error { … })
//			}
//		})
//	}
//
// Test runs many such worlds. In each, some faults happen for a while and then none any more; every client has to
// come to its end; the servers are given an order and have to end as it says, and to leave nothing behind. All the
// time the world watches over what the framework promises: whose turn it is, what no pass may leave out, that no
// wake-up is lost and no descriptor used after its close. The first thing that is not as it must be ends the test
// with the seed, a command that shows the same history again, the last events, and who waits for what.
//
// The parts of the world:
//
//	           World: clock, agenda, seed, history
//	 ┌───────────┴─────────────┬──────────────────────────┐
//	Server                   network                    Client
//	 act.Group, stepped       connections, latencies,    a script in straight lines,
//	 kernel: monitor.OS       resets, lost events        a net.Conn
//
// What a server does beside its schedulers, on goroutines of its own, is no part of the world and cannot be
// replayed: a Post from there panics. Offloaded functions are called by the world, on its own goroutine.
package sim
