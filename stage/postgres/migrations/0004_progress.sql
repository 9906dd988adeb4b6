-- What processors have noted in stages that have not finished, and at which stage. Without an index, so that heartbeats need not
-- write one.
ALTER TABLE daimon.task
	ADD COLUMN progress    bytea,
	ADD COLUMN progress_at text;
