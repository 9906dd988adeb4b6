// Package sim tests whole servers in a simulated world: it does deterministic simulation testing. The clock, the
// network, the faults and the order in which everything runs are drawn from one seed. The same seed gives the same
// history, down to the last byte and to the counts of the schedulers; a different seed gives a different one. Servers
// need no change for it: [World.Server] takes the same set-up functions as [act.Run].
//
// [Test] runs many such worlds. In each of them faults happen for a while and then stop. Every client must come to its
// end. Then the servers are told to shut down, must do so within the shutdown policy, and must leave nothing behind.
// All the time the world checks what the framework promises: which task has a turn, what a pass must not skip, that no
// wake-up is lost, and that no descriptor is used after its close. The first violation ends the test. Its report shows
// the seed, a command that repeats the same history, the last events, and what each task and client waits for. The
// guide is docs/simulation.md.
//
// The parts of a world:
//
//	           World: clock, agenda, seed, history
//	 ┌───────────┴─────────────┬──────────────────────────┐
//	Server                   network                    Client
//	 act.Group, stepped       connections, latencies,    a script, with
//	 kernel: descriptors      resets, lost events        a net.Conn
//
// Goroutines that a server starts itself are not part of the world, and what they do cannot be repeated. If one posts
// to a scheduler, the post panics. Offloaded functions are part of the world, which calls them on its own goroutine.
// Functions of bridges and blocking handlers may wait there: see [World.Await].
package sim
