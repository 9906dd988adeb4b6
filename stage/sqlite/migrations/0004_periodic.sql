-- The latest tick of each periodic task, by its name.
CREATE TABLE IF NOT EXISTS daimon_periodic (
	name TEXT    PRIMARY KEY,
	last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
