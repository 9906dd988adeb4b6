-- The indexes of 0006 and 0008, with conditions that transitions test faster: for IN with more than two values SQLite makes a
-- table in each statement.
DROP INDEX IF EXISTS daimon_task_status;
DROP INDEX IF EXISTS daimon_task_status_kind;
DROP INDEX IF EXISTS daimon_task_ended;
CREATE INDEX daimon_task_status ON daimon_task (status) WHERE status NOT IN ('NORMAL', 'IN_PROCESSING');
CREATE INDEX daimon_task_status_kind ON daimon_task (status, kind) WHERE status NOT IN ('NORMAL', 'IN_PROCESSING');
CREATE INDEX daimon_task_ended ON daimon_task (status, changed) WHERE due IS NULL AND status <> 'SUSPENDED';
