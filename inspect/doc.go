// Package inspect shows what a server is doing while it runs: what each scheduler does, its tasks and what each of them waits
// for, services, processes and stages, and counts and latencies. A program that does not import it links nothing of it.
package inspect
