package sqlite

import (
	"database/sql"

	"github.com/daimon-go/daimon/stage/internal/transition"
)

// OpenClock is Open with another clock.
var OpenClock = open

// Writer is the connection that writes.
func (s *Store) Writer() *sql.DB { return s.writer }

// Due is the statement that Claim finds tasks with, and ClaimedBy that of Claimed.
const (
	Due       = due
	ClaimedBy = claimed
)

// Many is how many tasks are too many to look at all of them for a page.
const Many = transition.Many

// List returns the statement that List finds tasks with.
var List = list
