// Package demon provides two simple demons, and the idle strategies: what a scheduler's thread does when nothing is ready.
//
// # Idle strategies
//
// A strategy is chosen by configuration; the same program runs with each. If in doubt, keep the default; if a CPU is to
// spare, try Hybrid:
//
//	act.Run(ctx, act.Config{Idle: demon.Hybrid(50 * time.Microsecond)}, server.Setup)
//
// The values of the flag -idle of package program are:
//
//	-idle      made by     when nothing is ready                 an event waits   an idle server costs
//	interrupt  nil         sleep until something happens         for a wake-up    nothing
//	poll       Pause       sleep a fixed time, then poll         up to the pause  a few wake-ups a pause
//	hybrid     Hybrid      poll for a while, then sleep          not, while busy  nothing
//	busy       Busy        poll                                  not              the whole CPU
//
// Each wraps how the scheduler would otherwise sleep. With each of them no Interrupt is lost, a deadline is late
// by at most one poll (for Pause also by the inaccuracy of Go's timers, about 1 ms at worst), and a shutdown request
// reaches the thread at once. docs/idle.md has measurements.
//
// # Demons
//
// A demon is a background action (see [act.Demon]). [Every] has a turn at a fixed interval. [Stay] only keeps
// [act.Scheduler.Run] from returning until shutdown, and Every does that too. Install them, do not spawn them:
//
//	s.Install(demon.Every(time.Minute, expireSessions))
package demon
