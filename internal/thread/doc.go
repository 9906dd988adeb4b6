// Package thread tells operating system threads apart and ties them to CPUs.
//
// A Go program seldom needs either. A scheduler does, for two reasons: whatever
// lives on one thread must notice being used on another, and a thread that
// stays on one CPU keeps that CPU's caches. Both mean something only to a
// goroutine that has called runtime.LockOSThread; any other may be on another
// thread by the time the answer is there.
//
//	        ID                       Pin                   CPUs
//	Linux   gettid(2)                sched_setaffinity(2)  sched_getaffinity(2)
//	others  the goroutine's number   an error              0 to NumCPU-1
//
// The package does not lock, start or end threads.
package thread
