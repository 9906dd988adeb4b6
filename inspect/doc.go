// Package inspect shows what a server is doing while it runs: its schedulers, its tasks and what each of them waits
// for, its services, actors (package process) and stages, with counts and latencies. Pages, metrics for Prometheus and
// profiles are served on an address of your choice; a watchdog logs turns that take too long. A program that does not
// import the package links nothing of it.
//
//	program.Serve("127.0.0.1:8080", handler, &inspect.Inspector{}) // -inspect 127.0.0.1:6060
//
// # Pages
//
// The address is logged. Each request for data has to bring the token, as ?token= or as "Authorization: Bearer". Without
// Inspector.Token that is a random one, which is logged with the address. A request by a host name other than localhost is refused,
// since a page of another site could give its name this address.
//
//	/             a page that is live; tasks are listed on demand
//	/text         the same as text: schedulers, services, kinds of tasks, counts and what they mean; with what has happened in
//	              one second, or up to 60 with ?seconds=, which is how long the answer takes
//	/tasks        findings, the tree of waits, and tasks and processes as text; with ?find=0/111 only rows that have this in a column
//	/last         the last events of all schedulers as text, or of one with ?scheduler=
//	/json         the Report, with the tables of the page: its fields are in docs/inspect.md, with the fields of the other JSON
//	/tasks.json   tasks and processes, at most 500 of each, how many there are, what tasks wait for, and findings
//	/metrics      the text format of Prometheus, with figures of your own (see [MetricSource])
//	/debug/pprof/ profiles for go tool pprof, like the pages of net/http/pprof, without cmdline, symbol and trace;
//	              profile takes up to 120 seconds
//
// For a request of package httpd the pages show the method and the pattern of a Mux, not the path. They show the names
// of processes, so a name should contain nothing that a client has sent.
//
// The tree of waits groups tasks by their kind and by what they wait for. It does not say which task waits for which.
// The kind of a task that serves a connection is the service; that of any other task is its action.
//
// The pages have a scheduler of their own, which ends last: they show a scheduler of the server that is stuck.
//
// # Stalls
//
// A watchdog reports a turn that takes longer than 50 ms (see [Watch]) while it still runs: its cause, the kind of its
// action, its peer and its stack. If the turn is in a system call, the report names the call and its descriptor, "read
// of pipe:[4711]", and has no stack. On systems other than Linux the cause is told from the stack alone. In a turn of a
// process the stack says which process it is: the kind is that of the action that runs all of a scheduler.
//
// # The last events
//
// A scheduler keeps its last events, about 2000: turns and their Directives, wake-ups, tasks that begin or fail,
// sleeps, and passes: a pass is a poll of the kernel with the work that follows. It keeps at most 256 events of one
// turn or pass, and counts the others. An event has no clock reading of its own, only the time of the pass before it.
// With -inspect-dir the events are written to a file after a panic, after a stall, and on SIGUSR1: see [Inspector]. A
// panic that becomes an error, as in a stage or in a callback of a future, writes no file.
//
// # Profiles
//
// While a CPU profile is taken, each turn and its coroutines have the label kind, by which go tool pprof tells the kinds
// of actions apart, with -tagfocus and -tags. The scheduler's own work has the label scheduler alone, and functions
// that run on another goroutine have neither. All processes on a scheduler are one kind.
//
// # Cost
//
// A scheduler counts on its own thread, without a lock, and times one turn in 64. That takes 3 to 4 % of the CPU time
// of an echoed message of 64 bytes, 24 bytes for each task, and 16 KiB for each scheduler. A scheduler answers
// questions between two turns, in slices of half a millisecond. It asks each action what it waits for. Idle connections
// allocate nothing for that; an action of yours does if its String or Describe makes texts. Viewers share the answers,
// which are asked for once a second at most. For the findings an open page asks for all tasks every 5 seconds, and less
// often if there are more than 2,500. Figures are in docs/inspect.md.
package inspect
