package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// repetition says what happens if a call that the server has refused is made again.
type repetition int

const (
	// never: the same comes of it. It is the data, a constraint, or the SQL.
	never repetition = iota
	// perhaps it succeeds. But a Commit may be the cause itself: if it returns such an error, that is an attempt.
	perhaps
	// later it succeeds: the server is the cause.
	later
)

// repetitions has codes of appendix A of PostgreSQL's documentation, and classes, which are their first two characters, for
// other codes. What is missing is never.
var repetitions = map[string]repetition{
	"08":    later,   // connections; a pooler has these for whatever keeps it from a server
	"0A000": perhaps, // the result of a prepared statement has other types than before
	"25006": later,   // nothing can be written: another host is the primary now
	"25P03": later,   // idle_in_transaction_session_timeout
	"25P04": later,   // transaction_timeout
	"26000": perhaps, // a prepared statement is gone, as after DISCARD ALL
	"28":    perhaps, // a user or password that a new connection cannot have
	"3D000": perhaps, // the same of the database
	"40":    later,   // conflicts with other transactions
	"40002": never,   // a constraint
	"42501": perhaps, // rights
	"42P05": perhaps, // a prepared statement that is there already
	"53":    later,   // disk, memory, connections
	"53400": perhaps, // a bound of the configuration, such as temp_file_limit
	"54000": perhaps, // no number is left for a transaction; also an index entry that is too large
	"55000": perhaps, // an object is in another state than it should be
	"55006": later,   // an object is in use
	"55P03": later,   // locks
	"57":    later,   // shutdowns and crashes
	"57014": perhaps, // cancelled, by an administrator or by statement_timeout
	"58":    later,   // input and output
	"72":    later,   // a snapshot is too old
	"HV00N": later,   // a foreign server that is not reached
	"XX":    perhaps, // internal errors; some poolers have others of theirs here
}

// repeated returns the repetition of a call that has failed with err. That of a connection that could not be made is later. For
// any other error that is not the server's, it is never.
func repeated(err error) repetition {
	var e *pgconn.PgError
	var c *pgconn.ConnectError
	switch {
	case errors.As(err, &e):
		if r, ok := repetitions[e.Code]; ok {
			return r
		}
		return repetitions[e.Code[:min(2, len(e.Code))]]
	case errors.As(err, &c):
		return later
	}
	return never
}
