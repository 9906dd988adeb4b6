// Package demon provides two simple demons, and the idle strategies: what a scheduler's thread does when nothing is ready.
//
// # Idle strategies
//
// A strategy is chosen by configuration; the same program runs under each. Those of the flag -idle of package program are:
//
//	-idle      made by     when nothing is ready                 an event waits   an idle server costs
//	interrupt  nil         sleep until something happens         for a wake-up    nothing
//	poll       Pause       sleep a fixed time, then look         up to the pause  a few wake-ups a pause
//	hybrid     Hybrid      look for a while, then sleep          not, while busy  nothing
//	busy       Busy        look                                  not              the whole CPU
//
//	act.Run(ctx, act.Config{Idle: demon.Hybrid(50 * time.Microsecond)}, server.Setup)
//
// Each wraps the Idler that the scheduler would otherwise have. Under each of them no Interrupt is lost, a deadline is late
// by at most one look (under poll also by the inaccuracy of Go's timers, about 1 ms at worst), and an order reaches the
// thread at once.
//
// # Demons
//
// [Every] has a turn at a fixed interval. [Stay] waits for what other goroutines are going to post. Both keep
// [act.Scheduler.Run] from returning until an order. They are installed, not spawned:
//
//	s.Install(demon.Every(time.Minute, expireSessions))
package demon
