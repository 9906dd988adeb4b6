-- What processors have noted in stages that have not finished. This is no column of daimon_task: to add one, SQLite checks all
-- rows, and it cannot be added twice. A task without progress costs a look into a table that is small, and in memory.
CREATE TABLE IF NOT EXISTS daimon_progress (
	task     INTEGER PRIMARY KEY REFERENCES daimon_task (id) ON DELETE CASCADE,
	at       TEXT NOT NULL, -- the stage
	progress BLOB
) STRICT;
