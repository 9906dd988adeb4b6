-- The kinds that are paused.
CREATE TABLE IF NOT EXISTS daimon_pause (
	kind TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
