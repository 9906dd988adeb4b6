// Package demon holds the demons that neither make tasks nor wake them, and the idle strategies: what a
// scheduler's thread does when nothing is ready.
//
// # Idle strategies
//
// A strategy is chosen by configuration alone; the same program runs under each:
//
//	name       made by     when nothing is ready                 an event waits   an idle server costs
//	interrupt  nil         sleep until something happens         for a wake-up    nothing
//	poll       [Pause]     sleep a fixed time, then look         up to the pause  a few wake-ups a pause
//	hybrid     [Hybrid]    look for a while, then sleep          not, while busy  nothing
//	busy       [Busy]      look                                  not              the whole CPU
//
//	idle, err := demon.ParseStrategy(*idleFlag)
//	…
//	act.Run(ctx, act.Config{Idle: idle}, server.Setup)
//
// Each wraps the Idler that the scheduler would otherwise have, whichever that is. Under each of them an
// Interrupt is never lost, a deadline is late by no more than one look (under poll also by what Go's
// timers take, about 1 ms at worst), and an order reaches the thread at once.
//
// # Demons
//
// [Every] takes a turn at a fixed interval. [Stay] keeps Run alive for what other goroutines are going
// to post. Both hold Run and end on an order. They are installed, not spawned:
//
//	s.Install(demon.Every(time.Minute, expireSessions))
package demon
