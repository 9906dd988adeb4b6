// Package inspect shows what a server is doing while it runs: what each scheduler does, its tasks and what each of them waits
// for, services, processes and stages, and counts and latencies. A program that does not import it links nothing of it.
//
//	server := program.Server{Addr: "127.0.0.1:8080"}
//	inspector := inspect.Flag() // -inspect 127.0.0.1:6060
//	server.Parse()
//	server.Run(inspector, server.Listen(server.Addr, handler))
//
// # Pages
//
// The address is logged, with a token that each request for data has to bring, as ?token= or as "Authorization: Bearer". A
// request by a host name other than localhost is refused, since a page of another site could give its name this address.
//
//	/             a page that is live; tasks are listed on demand
//	/text         the same as text: schedulers, services, kinds of tasks, counts
//	/tasks        tasks and processes as text, those with ?find= in one of their columns
//	/json         a [Report]
//	/tasks.json   tasks and processes, at most 500 of each, what all of them wait for, and findings about them
//	/metrics      the text format of Prometheus
//	/events       a [Report] each second, as server-sent events
//
// The pages have a scheduler of their own, which ends last: when one of the server's is stuck, they show it.
//
// # Stalls
//
// A watchdog reports a turn that takes longer than 50 ms (see [Watch]) while it still runs: its [Cause], the kind of its action,
// its connection and its stack. On systems other than Linux the cause is told from the stack alone.
//
// # Cost
//
// A scheduler counts on its own thread, without a lock, and times one turn in 64. A question about it is answered between two
// turns, for about a millisecond at a time; viewers share the answers, which are asked for once a second at most. What a task
// waits for is asked of its action then, and kept nowhere. Each task costs 16 bytes more.
package inspect
