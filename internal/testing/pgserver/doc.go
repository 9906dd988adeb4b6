// Package pgserver runs a PostgreSQL server of one's own, and PgBouncer before it, for tests and benchmarks. Each has a
// temporary folder and a port of the loopback interface.
//
//	s, err := pgserver.Start(pgserver.Config{Settings: map[string]string{"fsync": "off"}})
//	...
//	defer s.Close()
//	url, err := s.Create("tasks")
//
// All packages of a run may share one server: the program that runs them starts it and adds Server.Env to their environment. Shared
// finds it there.
//
// Both programs refuse to run as root: then they run as the user postgres or nobody.
//
// Nothing is left behind, however the process ends: a shell beside each server, the guard, waits until the process closes
// a pipe, kills the server and all its processes, also stopped ones, and removes the folder.
package pgserver
