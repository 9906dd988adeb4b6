-- When a task has ended. This is a column, and not an index of changed: Enter, which moves that, would have to write all indexes.
ALTER TABLE daimon.task ADD COLUMN ended timestamptz
	GENERATED ALWAYS AS (CASE WHEN due IS NULL AND until IS NULL AND status <> 'SUSPENDED' THEN changed END) STORED;

CREATE INDEX task_ended ON daimon.task (status, ended, id) WHERE ended IS NOT NULL;
