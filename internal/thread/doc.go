// Package thread identifies operating system threads and binds them to CPUs.
//
// A scheduler needs both: objects that belong to one thread must notice a use on another, and on a machine of its own a
// thread that stays on one CPU keeps its caches. Both are meaningful only on a goroutine that has called
// runtime.LockOSThread.
//
//	        ID                      Bind                  CPUs                  LeastUsed
//	Linux   gettid(2)               sched_setaffinity(2)  sched_getaffinity(2)  proc(5)
//	others  the goroutine's number  an error              0 to NumCPU-1         unknown
//
// The package does not lock, start or end threads.
package thread
