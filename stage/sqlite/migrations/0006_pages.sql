-- For lists. id is the last column of any index.
CREATE INDEX IF NOT EXISTS daimon_task_kind ON daimon_task (kind);

-- Tasks that are neither new, in processing nor finished: engines that have no trouble do not write these indexes.
CREATE INDEX IF NOT EXISTS daimon_task_status ON daimon_task (status)
	WHERE status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS daimon_task_status_kind ON daimon_task (status, kind)
	WHERE status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED');
