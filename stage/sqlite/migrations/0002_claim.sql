-- The latest claim of each task that was claimed. This is no column of daimon_task: to add one, SQLite checks all rows.
CREATE TABLE IF NOT EXISTS daimon_claim (
	task   INTEGER PRIMARY KEY REFERENCES daimon_task (id) ON DELETE CASCADE,
	token  INTEGER NOT NULL, -- which the task got then
	engine INTEGER NOT NULL,
	number INTEGER NOT NULL
) STRICT;

-- What may be claimed, in the order of claims: new tasks last. The index of 0001 has the same name, so that 0001 does not
-- make it again. The tasks that are held are among those that are not new.
DROP INDEX IF EXISTS daimon_task_due;
CREATE INDEX daimon_task_due ON daimon_task ((token = 0 AND status = 'NORMAL'), kind, due) WHERE due IS NOT NULL;
