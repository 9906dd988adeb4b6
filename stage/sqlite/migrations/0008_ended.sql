-- Tasks that have ended, by when they did.
CREATE INDEX IF NOT EXISTS daimon_task_ended ON daimon_task (status, changed)
	WHERE due IS NULL AND status IN ('NORMAL', 'CANCELLED', 'ERROR');
