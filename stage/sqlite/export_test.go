package sqlite

import "database/sql"

// OpenClock is Open with another clock.
var OpenClock = open

// Writer is the connection that writes.
func (s *Store) Writer() *sql.DB { return s.writer }

// Due is the statement that Claim finds tasks with, and ClaimedBy that of Claimed.
const (
	Due       = due
	ClaimedBy = claimed
)

// List returns the statement that List finds tasks with.
var List = list
