// Package inspect shows what a server is doing while it runs: what each scheduler does, its tasks and what each of them waits
// for, services, processes and stages, and counts and latencies. A program that does not import it links nothing of it.
//
//	program.Serve("127.0.0.1:8080", handler, &inspect.Inspector{}) // -inspect 127.0.0.1:6060
//
// # Pages
//
// The address is logged, with a token that each request for data has to bring, as ?token= or as "Authorization: Bearer". A
// request by a host name other than localhost is refused, since a page of another site could give its name this address.
//
//	/             a page that is live; tasks are listed on demand
//	/text         the same as text: schedulers, services, kinds of tasks, counts and what they mean; with what has happened in
//	              one second, or up to 60 with ?seconds=, which is how long the answer takes
//	/tasks        findings, the tree of waits, and tasks and processes as text, those with ?find= in one of their columns, such as 0/111
//	/last         the last events of all schedulers as text, or of one with ?scheduler=
//	/json         the Report: its fields are in docs/inspect.md, with those of the other JSON
//	/tasks.json   tasks and processes, at most 500 of each, how many there are, what tasks wait for, and findings
//	/metrics      the text format of Prometheus, with figures of your own (see [MetricSource])
//	/events       a Report each second, with the tables of the page, as server-sent events
//	/debug/pprof/ profiles for go tool pprof, as those of net/http/pprof, without cmdline and symbol;
//	              profile and trace take up to 120 and 10 seconds
//
// Findings about tasks are up to 5 seconds old in /json and /events, or 2 milliseconds for each task if that is longer: 30 seconds
// with 15,000. Of a request of package httpd the method and the pattern of a Mux are shown, and not the path. The names of processes
// are shown, so they should have nothing of a client in them.
//
// The tree of waits groups tasks by their kind and by what they wait for. It does not say which task waits for which. The kind of a
// task that serves a connection is the service. Tasks that a handler spawns have no service: their kind is that of their action.
//
// The pages have a scheduler of their own, which ends last: when one of the server's is stuck, they show it.
//
// # Stalls
//
// A watchdog reports a turn that takes longer than 50 ms (see [Watch]) while it still runs: its cause, the kind of its action,
// its connection and its stack. Of a turn in a system call it names the call and what it is about, "read of pipe:[4711]", and has no
// stack. On systems other than Linux the cause is told from the stack alone. In a turn of a process the kind is that of the action that
// runs all processes of the scheduler, and the stack says which one it is. Behind a PROXY header the peer is the proxy.
//
// # The last events
//
// A scheduler keeps its last events, about 2000: turns and their verdicts, wake-ups, tasks that begin or fail, passes, sleeps. At most
// 256 are of one turn or pass; of others it keeps the number. An event has no clock of its own, but the time of the pass before. With
// -inspect-dir they are written to a file after a panic of an action, a process or a posted function, a stall, and SIGUSR1: see
// [Inspector]. A panic that becomes an error, as in a stage or in a callback of a future, has no file.
//
// # Profiles
//
// While a CPU profile is taken at /debug/pprof/profile, each turn has the label kind, and a coroutine that of its turn. By it, -tagfocus
// and -tags of go tool pprof tell the kinds of actions apart. The scheduler's own work has the label scheduler alone, and functions that
// run off the thread have neither. All processes of package process on a scheduler are one kind.
//
// # Cost
//
// A scheduler counts on its own thread, without a lock, and times one turn in 64. That takes 3 to 4 % of the CPU time of an echoed
// message of 64 bytes, 24 bytes for each task, and 16 KiB for each scheduler. A question about a scheduler is answered between two turns,
// in slices of half a millisecond. It asks each action what it waits for, and connections at rest allocate nothing there; actions of yours
// that make texts in a String or in a Describe do. Viewers share the answers, which are asked for once a second at most. For the findings an
// open page asks for all tasks every 5 seconds, and less often if there are more than 2,500. Figures are in docs/inspect.md.
package inspect
