// epoll -addr 127.0.0.1:PORT -reactors N: the echo server to beat. What a careful C programmer writes by hand for one
// purpose, doing per message what Daimon does per message and nothing else: one receive, one send, and
// its share of an epoll_wait. No timers, no limits, no logging, no orderly end.
#include "ready.h"

_Noreturn static void run(int listener)
{
	struct epoll_event events[BATCH];
	struct reactor *r = watch_all(listener);
	for (;;) {
		int n = wait_for(r, events);
		for (int i = 0; i < n; i++)
			handle(r, &events[i]);
	}
}
