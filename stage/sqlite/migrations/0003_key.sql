-- The latest task of each NewTask.Key. A task without a key has no row.
CREATE TABLE IF NOT EXISTS daimon_key (
	kind TEXT    NOT NULL,
	key  TEXT    NOT NULL,
	task INTEGER NOT NULL REFERENCES daimon_task (id) ON DELETE CASCADE,

	PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- For the deletion of tasks.
CREATE INDEX IF NOT EXISTS daimon_key_task ON daimon_key (task);
